// Package definition reads what programs know of nouns: their routes, attributes and changes.
package definition

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Format is the newest format of the definitions that this program reads.
const Format = 3

// Modes of attributes.
const (
	Required = "required"
	Optional = "optional"
	Default  = "default"
	Chosen   = "chosen"
	Computed = "computed"
)

// Call is a request of the API.
type Call struct {
	ID        string `json:"id"`
	Method    string `json:"method"`
	Path      string `json:"path"`
	Operation bool   `json:"operation"`
	// It cannot be asked what it would do.
	NoDryRun bool `json:"noDryRun"`
	// Fields of the answer; no state has them.
	SecretFields unused `json:"secretFields"`
}

// unused is a rule that may be ignored: nothing that the engine does depends on it. Nouns with a rule that nobody reads
// are left out.
type unused struct{}

// UnmarshalJSON takes anything.
func (*unused) UnmarshalJSON([]byte) error { return nil }

// Change is a request that changes an object in place. It has `by` and `sets`, `by` and `when`, or `each`.
type Change struct {
	By    *Call             `json:"by"`
	Sets  map[string]string `json:"sets"`
	On    string            `json:"on"`
	Needs map[string]any    `json:"needs"`
	Moves []string          `json:"moves"`
	Grows bool              `json:"grows"`
	// Facts that are sent along.
	Expects []string `json:"expects"`
	ReadBy  *Call    `json:"readBy"`
	// Where items of the list show it when it includes that: `parts.firewall`.
	Listed string         `json:"listed"`
	When   map[string]any `json:"when"`
	Each   string         `json:"each"`
	Key    string         `json:"key"`
	List   *Call          `json:"list"`
	Add    *Call          `json:"add"`
	Remove *Call          `json:"remove"`
	// What it takes in the meantime: the plan does not say it.
	Rolls unused `json:"rolls"`
}

// Whole is the field of a change whose attribute is the complete body.
const Whole = "*"

// Creates says under which field the creation takes an attribute, by value.
type Creates struct {
	Field  string          `json:"field"`
	Values map[string]bool `json:"values"`
}

// Attribute is a wish or a fact.
type Attribute struct {
	Mode    string   `json:"mode"`
	Default any      `json:"default"`
	Creates *Creates `json:"creates"`
	// Names that it had in older releases.
	Formerly []string `json:"formerly"`
	// "nothing" or "presence".
	Shows    string `json:"shows"`
	As       string `json:"as"`
	Replaces bool   `json:"replaces"`
	// The creation does not take it.
	Later bool `json:"later"`
	// Null when left out, though the view shows something.
	IsOptional bool   `json:"isOptional"`
	IsSet      bool   `json:"isSet"`
	IsSecret   bool   `json:"isSecret"`
	Same       string `json:"same"`
	// Rules of the members of an object, or of the objects of a list.
	Of map[string]*Attribute `json:"of"`
	// Where the view shows it, if not under its name: the field of an object, or of each member of a list.
	At string `json:"at"`
	// While that attribute is null, the view shows null.
	NullWithout string `json:"nullWithout"`
	// While that attribute is not null, the view shows something instead of null.
	NullWith string `json:"nullWith"`
	// Of a member of an object: another one, whose value it has when left out.
	Follows string `json:"follows"`
	// Of a member of an object: the service chooses it when left out.
	IsChosen bool `json:"isChosen"`
	// Of a member of an object: left out, it has the defaults of its own members.
	IsFilled bool `json:"isFilled"`
	// Its name here, where configurations use the word themselves.
	Alias string `json:"alias"`
	// The field of the creation, where it has another name.
	Field string `json:"-"`
	// Of what is shown besides the members that people write.
	Facts   unused `json:"facts"`
	Moments unused `json:"moments"`
	// While that attribute is not null, the service chooses the value.
	FreeWith string `json:"freeWith"`
	// Another noun keeps the same things one by one: left out, it stays as it is.
	IsApart bool `json:"-"`
	// The noun of an id: configurations refer by themselves.
	Refers unused `json:"refers"`
	// An action, which nobody asks for here.
	ChangedBy unused `json:"changedBy"`
	IsEdited  unused `json:"isEdited"`
	// Parsed into Kind.
	Schema json.RawMessage `json:"schema"`
	Kind   *Kind           `json:"-"`
}

// IsUnread is true when no answer shows the attribute.
func (a *Attribute) IsUnread() bool { return a.Shows == "nothing" }

// IsPresence is true when an answer shows another value, and null means false.
func (a *Attribute) IsPresence() bool { return a.Shows == "presence" }

// LeftOut answers what the attribute is when nobody writes it, where that is known.
func (a *Attribute) LeftOut() (any, bool) {
	switch {
	case a.Mode != Default, a.IsApart:
		return nil, false
	case a.Default != nil:
		return a.Default, true
	case a.Kind.HasDefault:
		return a.Kind.Default, true
	case a.Kind.Type == List:
		return []any{}, true
	case a.Kind.Type == Map:
		return map[string]any{}, true
	}
	return nil, true
}

// Parent is the noun that another one is a part of.
type Parent struct {
	// The attribute with the id of the parent.
	Field string `json:"field"`
	// The parameter of its own id, where all of its paths are below the parent.
	Own    string `json:"own"`
	Refers string `json:"refers"`
	// The attribute of the parent that keeps the same things.
	Instead string `json:"instead"`
	// Where the parent shows it, when nothing lists it.
	ShownIn *struct {
		Read  Call   `json:"read"`
		Field string `json:"field"`
	} `json:"shownIn"`
	Parameter unused `json:"parameter"`
}

// Ready is how a creation without an operation ends.
type Ready struct {
	Field  string `json:"field"`
	Is     string `json:"is"`
	Failed string `json:"failed"`
}

// Noun is a type of objects.
type Noun struct {
	Noun string `json:"noun"`
	// Names that it had in older releases.
	Formerly []string `json:"formerly"`
	// As in answers, where that is another name.
	Key      string   `json:"key"`
	Identity string   `json:"identity"`
	Parent   *Parent  `json:"parent"`
	Ready    *Ready   `json:"ready"`
	Names    []string `json:"names"`
	UniqueIn string   `json:"uniqueIn"`
	Routes   struct {
		List struct {
			Call
			Whole bool     `json:"whole"`
			Takes []string `json:"takes"`
		} `json:"list"`
		Create Call `json:"create"`
		Read   Call `json:"read"`
		Remove struct {
			Call
			Takes map[string]json.RawMessage `json:"takes"`
			Needs map[string]any             `json:"needs"`
		} `json:"remove"`
	} `json:"routes"`
	Changes    []*Change                  `json:"changes"`
	Attributes map[string]*Attribute      `json:"attributes"`
	Moments    map[string]json.RawMessage `json:"moments"`
	// Not offered yet.
	Secrets unused `json:"secrets"`
	Actions unused `json:"actions"`
	// Moments by name.
	MomentKinds map[string]*Kind `json:"-"`
	// Parameters of the deletion by name.
	TakeKinds map[string]*Kind `json:"-"`
}

// Plural is the noun of lists: the last word of their path.
func (n *Noun) Plural() string {
	path := n.Routes.List.Path
	plural := strings.ReplaceAll(path[strings.LastIndex(path, "/")+1:], "-", "_")
	if plural == n.Noun {
		return plural + "s"
	}
	return plural
}

// IDField is the attribute with the id that paths have.
func (n *Noun) IDField() string {
	if n.Identity != "" {
		return n.Identity
	}
	return "id"
}

// IsPart is true for a noun all of whose paths are below its parent.
func (n *Noun) IsPart() bool { return n.Parent != nil && n.Parent.Own != "" }

// Address is what paths say of an object: its id, after that of its parent and a slash where it is a part. Empty while
// one of them is not known.
func (n *Noun) Address(object map[string]any) string {
	id, _ := object[n.IDField()].(string)
	if !n.IsPart() {
		return id
	}
	parent, _ := object[n.Parent.Field].(string)
	if id == "" || parent == "" {
		return ""
	}
	return parent + "/" + id
}

// Located are the attributes that an address says.
func (n *Noun) Located(address string) map[string]any {
	parent, id, isPart := strings.Cut(address, "/")
	if !isPart || !n.IsPart() {
		return map[string]any{n.IDField(): address}
	}
	return map[string]any{n.Parent.Field: parent, n.IDField(): id}
}

// AttributeNames are in alphabetical order.
func (n *Noun) AttributeNames() []string {
	names := make([]string, 0, len(n.Attributes))
	for name := range n.Attributes {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// EachOf answers the change by which members of the attribute are added and removed.
func (n *Noun) EachOf(name string) *Change {
	for _, change := range n.Changes {
		if change.Each == name {
			return change
		}
	}
	return nil
}

// ReadApart answers the request that shows the attribute, where the view lacks it.
func (n *Noun) ReadApart(name string) *Call {
	for _, change := range n.Changes {
		if change.Each == name {
			return change.List
		}
		if _, isSet := change.Sets[name]; isSet && change.ReadBy != nil {
			return change.ReadBy
		}
	}
	return nil
}

// Included is what the list has to include so that its items show everything; empty when they do.
func (n *Noun) Included() string {
	for _, change := range n.Changes {
		if included, _, isThere := strings.Cut(change.Listed, "."); isThere && slices.Contains(n.Routes.List.Takes, "include") {
			return included
		}
	}
	return ""
}

// ListedAt is where an item of the list shows the attribute, if the list includes that.
func (n *Noun) ListedAt(name string) string {
	for _, change := range n.Changes {
		if _, isSet := change.Sets[name]; change.Listed != "" && (isSet || change.Each == name) {
			return change.Listed
		}
	}
	return ""
}

// BringAbout answers the change that gives the attribute a value.
func (n *Noun) BringAbout(name string, value any) *Change {
	for _, change := range n.Changes {
		if wanted, isThere := change.When[name]; isThere && wanted == value {
			return change
		}
	}
	return nil
}

// ParentInPath is the attribute that the path of the creation names; empty when it names none.
func (n *Noun) ParentInPath() string {
	if n.Parent == nil || !strings.Contains(n.Routes.Create.Path, "{") {
		return ""
	}
	return n.Parent.Field
}

// Parse reads the file of definitions. A noun with a rule or a value that is not known here is left out, with the reason.
func Parse(text []byte) (nouns []*Noun, leftOut map[string]error, err error) {
	var file struct {
		Format int               `json:"format"`
		Nouns  []json.RawMessage `json:"nouns"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, nil, fmt.Errorf("the definitions cannot be read: %w", err)
	}
	if file.Format > Format {
		return nil, nil, fmt.Errorf("the definitions have format %d; this provider reads %d", file.Format, Format)
	}
	leftOut = map[string]error{}
	for _, text := range file.Nouns {
		noun := &Noun{}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(noun); err != nil {
			var named struct {
				Noun string `json:"noun"`
			}
			if json.Unmarshal(text, &named) != nil {
				return nil, nil, fmt.Errorf("the definitions cannot be read: %w", err)
			}
			leftOut[named.Noun] = err
			continue
		}
		noun.rename()
		if err := noun.parseKinds(); err != nil {
			leftOut[noun.Noun] = err
			continue
		}
		if reason := noun.unserved(); reason != "" {
			leftOut[noun.Noun] = errors.New(reason)
			continue
		}
		if noun.Key == "" {
			noun.Key = noun.Noun
		}
		nouns = append(nouns, noun)
	}
	setApart(nouns)
	return nouns, leftOut, nil
}

// rename gives attributes the names that they have here.
func (n *Noun) rename() {
	for name, attribute := range n.Attributes {
		alias := attribute.Alias
		if alias == "" || attribute.Field != "" {
			continue
		}
		attribute.Field = name
		if attribute.At == "" {
			attribute.At = name
		}
		delete(n.Attributes, name)
		n.Attributes[alias] = attribute
		for _, change := range n.Changes {
			if field, isSet := change.Sets[name]; isSet {
				delete(change.Sets, name)
				change.Sets[alias] = field
			}
		}
	}
}

// setApart marks the attributes that keep the same things as another noun does.
func setApart(nouns []*Noun) {
	for _, part := range nouns {
		if part.Parent == nil || part.Parent.Instead == "" {
			continue
		}
		for _, noun := range nouns {
			if attribute := noun.Attributes[part.Parent.Instead]; noun.Noun == part.Parent.Refers && attribute != nil {
				attribute.IsApart = true
			}
		}
	}
}

// unserved says why the engine cannot keep the noun; empty when it can.
func (n *Noun) unserved() string {
	switch {
	case n.Routes.List.Path == "" && (n.Parent == nil || n.Parent.ShownIn == nil):
		return "nothing lists it"
	}
	return ""
}

func (n *Noun) parseKinds() error {
	for name, attribute := range n.Attributes {
		kind, err := ParseKind(attribute.Schema)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		attribute.Kind = kind
	}
	var err error
	if n.MomentKinds, err = kindsOf(n.Moments); err != nil {
		return err
	}
	if n.TakeKinds, err = kindsOf(n.Routes.Remove.Takes); err != nil {
		return err
	}
	for _, kind := range n.TakeKinds {
		if kind.isSwitch() {
			*kind = Kind{Type: Bool, Description: kind.Description}
		}
	}
	return nil
}

func kindsOf(schemas map[string]json.RawMessage) (map[string]*Kind, error) {
	kinds := map[string]*Kind{}
	for name, schema := range schemas {
		kind, err := ParseKind(schema)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		kinds[name] = kind
	}
	return kinds, nil
}
