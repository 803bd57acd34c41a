package main

import (
	"log"
	"path"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// Description is all that reflection tells: which type a kind is, and what the types are made of.
type Description struct {
	Kinds map[string]string `json:"kinds"` // "apps/v1/Deployment" → "apps.v1.Deployment"
	Types map[string]*Type  `json:"types"`
}

// Type is one named type: a struct with fields, or another name for its base.
type Type struct {
	Base      string  `json:"base,omitempty"`
	IsSpecial bool    `json:"special,omitempty"` // writes its JSON by itself
	IsMessage bool    `json:"message,omitempty"` // a list that protobuf wraps in a message
	Package   string  `json:"package"`
	Fields    []Field `json:"fields,omitempty"`
}

// Field is one field of a struct; an inlined one has no name.
type Field struct {
	Name          string `json:"name,omitempty"`
	GoName        string `json:"goName"`
	Type          string `json:"type"`
	Number        int    `json:"number,omitempty"`
	Wire          string `json:"wire,omitempty"`
	IsRepeated    bool   `json:"repeated,omitempty"`
	OmitEmpty     bool   `json:"omitEmpty,omitempty"`
	OmitZero      bool   `json:"omitZero,omitempty"`
	PatchStrategy string `json:"patchStrategy,omitempty"`
	PatchMergeKey string `json:"patchMergeKey,omitempty"`
}

type protoSized interface{ Size() int }
type jsonReader interface{ UnmarshalJSON([]byte) error }

func describe(scheme *runtime.Scheme) *Description {
	description := &Description{Kinds: map[string]string{}, Types: map[string]*Type{}}
	for kind, goType := range scheme.AllKnownTypes() {
		if kind.Version == runtime.APIVersionInternal {
			continue
		}
		description.Kinds[kind.Group+"/"+kind.Version+"/"+kind.Kind] = description.name(goType)
	}
	return description
}

// name is how a type is called in the tables; a named one is described on the way.
func (d *Description) name(t reflect.Type) string {
	if t.PkgPath() == "" {
		switch t.Kind() {
		case reflect.Pointer:
			return "*" + d.name(t.Elem())
		case reflect.Slice:
			return "[]" + d.name(t.Elem())
		case reflect.Map:
			return "map[" + d.name(t.Key()) + "]" + d.name(t.Elem())
		default:
			return t.String()
		}
	}
	folder, last := path.Split(t.PkgPath())
	name := path.Base(folder) + "." + last + "." + t.Name()
	if _, known := d.Types[name]; !known {
		described := &Type{Package: t.PkgPath()}
		d.Types[name] = described
		d.fill(described, t)
	} else if d.Types[name].Package != t.PkgPath() {
		log.Fatalf("%s is the name of two types: %s and %s", name, d.Types[name].Package, t.PkgPath())
	}
	return name
}

func (d *Description) fill(described *Type, t reflect.Type) {
	pointer := reflect.PointerTo(t)
	described.IsSpecial = pointer.Implements(reflect.TypeFor[jsonReader]())
	described.IsMessage = t.Kind() == reflect.Slice && pointer.Implements(reflect.TypeFor[protoSized]())
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if field := t.Field(i); field.IsExported() && field.Tag.Get("json") != "-" {
				described.Fields = append(described.Fields, d.field(field))
			}
		}
	case reflect.Slice:
		described.Base = "[]" + d.name(t.Elem())
	case reflect.Map:
		described.Base = "map[" + d.name(t.Key()) + "]" + d.name(t.Elem())
	default:
		described.Base = t.Kind().String()
	}
}

func (d *Description) field(field reflect.StructField) Field {
	options := strings.Split(field.Tag.Get("json"), ",")
	described := Field{
		Name:          options[0],
		GoName:        field.Name,
		Type:          d.name(field.Type),
		PatchStrategy: field.Tag.Get("patchStrategy"),
		PatchMergeKey: field.Tag.Get("patchMergeKey"),
	}
	for _, option := range options[1:] {
		described.OmitEmpty = described.OmitEmpty || option == "omitempty"
		described.OmitZero = described.OmitZero || option == "omitzero"
	}
	if tag := strings.Split(field.Tag.Get("protobuf"), ","); len(tag) >= 3 {
		number, err := strconv.Atoi(tag[1])
		must(err)
		described.Wire, described.Number, described.IsRepeated = tag[0], number, tag[2] == "rep"
	}
	return described
}
