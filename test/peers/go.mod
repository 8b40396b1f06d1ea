module github.com/fieldperm/fieldperm/test/peers

go 1.26.0
