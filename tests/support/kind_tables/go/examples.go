package main

import (
	"bytes"
	"encoding/json"
	"math/rand"
	"reflect"
	"sort"
	"strings"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Example is one object as it travels, and as it reads after a round trip through protobuf.
type Example struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Protobuf   []byte          `json:"protobuf"`
	Given      json.RawMessage `json:"given"`
	Written    json.RawMessage `json:"written"`
}

// deepest bounds random objects: kinds such as JSONSchemaProps hold themselves.
const deepest = 9

var quantities = []string{"0", "1", "100m", "1500m", "2Gi", "1Ki", "4096Mi", "1e3", "0.5", "12345678901234567890", "1n"}

func examples(scheme *runtime.Scheme, seed int64, count int) []Example {
	var kinds []schema.GroupVersionKind
	for kind := range scheme.AllKnownTypes() {
		if kind.Version != runtime.APIVersionInternal && isWritten(scheme, kind) {
			kinds = append(kinds, kind)
		}
	}
	sort.Slice(kinds, func(i, j int) bool { return kinds[i].String() < kinds[j].String() })
	filler := &filler{random: rand.New(rand.NewSource(seed))}
	serializer := protobuf.NewSerializer(scheme, scheme)
	made := make([]Example, 0, count)
	for i := range count {
		kind := kinds[i%len(kinds)]
		filled, err := scheme.New(kind)
		must(err)
		filler.fill(reflect.ValueOf(filled).Elem(), 0)
		filled.GetObjectKind().SetGroupVersionKind(kind)
		given, err := json.Marshal(filled)
		must(err)
		var encoded bytes.Buffer
		must(serializer.Encode(filled, &encoded))
		decoded, _, err := serializer.Decode(encoded.Bytes(), nil, nil)
		must(err)
		decoded.GetObjectKind().SetGroupVersionKind(kind)
		written, err := json.Marshal(decoded)
		must(err)
		made = append(made, Example{kind.GroupVersion().String(), kind.Kind, encoded.Bytes(), given, written})
	}
	return made
}

// isWritten tells the kinds that clients send from lists, options and what only servers write.
func isWritten(scheme *runtime.Scheme, kind schema.GroupVersionKind) bool {
	goType := scheme.AllKnownTypes()[kind]
	if kind.Kind == "DeleteOptions" {
		return kind.Group == ""
	}
	_, hasMetadata := goType.FieldByName("ObjectMeta")
	return hasMetadata && !strings.HasSuffix(kind.Kind, "List") && goType.PkgPath() != reflect.TypeFor[meta.Status]().PkgPath()
}

type filler struct{ random *rand.Rand }

func (f *filler) fill(v reflect.Value, depth int) {
	if f.special(v, depth) {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if !field.IsExported() || field.Type == reflect.TypeFor[meta.TypeMeta]() {
				continue
			}
			if field.Anonymous || f.random.Float64() < f.share(depth) {
				f.fill(v.Field(i), depth+1)
			}
		}
	case reflect.Pointer:
		if depth < deepest {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), depth)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(f.text()))
			return
		}
		if depth >= deepest {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), f.random.Intn(3), 3))
		for i := range v.Len() {
			f.fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		if depth >= deepest {
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		for range f.random.Intn(3) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(key, depth+1)
			f.fill(value, depth+1)
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		v.SetString(f.text())
	case reflect.Bool:
		v.SetBool(f.random.Intn(2) == 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(f.number())
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(f.random.Int31()))
	case reflect.Float64:
		v.SetFloat(float64(f.number()) / 8)
	default:
		panic("no random values of " + v.Type().String())
	}
}

// special fills the types that write their JSON by themselves.
func (f *filler) special(v reflect.Value, depth int) bool {
	switch special := v.Addr().Interface().(type) {
	case *meta.Time:
		special.Time = time.Unix(f.random.Int63n(4e9), 0)
	case *meta.MicroTime:
		special.Time = time.Unix(f.random.Int63n(4e9), f.random.Int63n(1e6)*1e3)
	case *meta.Duration:
		special.Duration = time.Duration(f.number()) * time.Millisecond
	case *resource.Quantity:
		*special = resource.MustParse(quantities[f.random.Intn(len(quantities))])
	case *intstr.IntOrString:
		*special = intstr.FromInt32(int32(f.number()))
		if f.random.Intn(2) == 0 {
			*special = intstr.FromString(f.text())
		}
	case *runtime.RawExtension:
		special.Raw = f.json()
	case *meta.FieldsV1:
		special.SetRawBytes([]byte(`{"f:metadata":{"f:labels":{}}}`))
	case *apiextensions.JSON:
		special.Raw = f.json()
	case *apiextensions.JSONSchemaPropsOrBool:
		special.Allows = f.random.Intn(2) == 0
		if special.Allows && f.random.Intn(2) == 0 && depth < deepest {
			special.Schema = &apiextensions.JSONSchemaProps{}
			f.fill(reflect.ValueOf(special.Schema).Elem(), depth+1)
		}
	case *apiextensions.JSONSchemaPropsOrArray:
		special.Schema = &apiextensions.JSONSchemaProps{Type: f.text()}
		if f.random.Intn(2) == 0 {
			special.JSONSchemas, special.Schema = []apiextensions.JSONSchemaProps{*special.Schema, {}}, nil
		}
	case *apiextensions.JSONSchemaPropsOrStringArray:
		special.Schema = &apiextensions.JSONSchemaProps{Type: f.text()}
		if f.random.Intn(2) == 0 {
			special.Property, special.Schema = []string{f.text()}, nil
		}
	default:
		return false
	}
	return true
}

func (f *filler) share(depth int) float64 {
	if depth < 2 {
		return 0.9
	}
	return 0.3
}

func (f *filler) number() int64 {
	return []int64{0, 1, -1, 7, 300, 1 << 20, 1<<31 - 1, -1 << 31}[f.random.Intn(8)]
}

func (f *filler) text() string {
	return []string{"", "a", "run", "größe", "a longer text, with a \" and a \n in it"}[f.random.Intn(5)]
}

func (f *filler) json() []byte {
	return []byte([]string{`{"a":[1,2.5,null,{"b":"c"}]}`, `"text"`, `3`, `[]`, `{"kind":"X","apiVersion":"y/v1"}`, `false`}[f.random.Intn(6)])
}
