package v1

type TypeMeta struct{}

type ObjectMeta struct{}
