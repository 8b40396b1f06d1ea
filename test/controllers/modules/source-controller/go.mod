// The kinds of Flux's sources, whose definitions the tests read from the module. No package of it is built.
module github.com/fieldperm/fieldperm/test/controllers/modules/source-controller

go 1.26.0

require github.com/fluxcd/source-controller v1.9.6
