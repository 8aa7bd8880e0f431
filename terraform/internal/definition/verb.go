package definition

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// Verb is a request that keeps nothing as it is written: a secret that is read, or an action.
type Verb struct {
	Call
	Summary string `json:"summary"`
	// The service judges it without doing it.
	DryRun bool `json:"dryRun"`
	// Names of Query and Body that have to be there.
	Required     []string                   `json:"required"`
	QuerySchemas map[string]json.RawMessage `json:"query"`
	BodySchemas  map[string]json.RawMessage `json:"body"`
	ShownSchemas map[string]json.RawMessage `json:"shows"`
	// Fields of the answer that nothing else shows.
	SecretFields []string `json:"secretFields"`
	// Of them by name.
	Query map[string]*Kind `json:"-"`
	Body  map[string]*Kind `json:"-"`
	Shown map[string]*Kind `json:"-"`
	// The noun that it is a verb of.
	Of string `json:"-"`
}

var parameter = regexp.MustCompile(`\{([^}]*)\}`)

// Parameters are the names of the path, in their order.
func (v *Verb) Parameters() []string {
	var names []string
	for _, found := range parameter.FindAllStringSubmatch(v.Path, -1) {
		names = append(names, found[1])
	}
	return names
}

// Name is that of a secret or an action, without the verb of reading.
func (v *Verb) Name() string { return strings.TrimPrefix(v.ID, "get_") }

// ParseVerbs reads the secrets of all nouns, and the actions of these.
func ParseVerbs(text []byte, nouns []*Noun) (secrets, actions []*Verb, err error) {
	var file struct {
		Nouns []struct {
			Noun    string  `json:"noun"`
			Secrets []*Verb `json:"secrets"`
			Actions []*Verb `json:"actions"`
		} `json:"nouns"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, nil, fmt.Errorf("the definitions cannot be read: %w", err)
	}
	served := map[string]bool{}
	for _, noun := range nouns {
		served[noun.Noun] = true
	}
	for _, noun := range file.Nouns {
		for _, verb := range append(append([]*Verb{}, noun.Secrets...), noun.Actions...) {
			verb.Of = noun.Noun
			if err := verb.parseKinds(); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", verb.ID, err)
			}
		}
		secrets = append(secrets, noun.Secrets...)
		for _, action := range noun.Actions {
			// an action answers nothing: its secret would be lost
			isLost := len(action.SecretFields) > 0 && len(noun.Secrets) == 0
			if served[noun.Noun] && !isLost {
				actions = append(actions, action)
			}
		}
	}
	return secrets, actions, nil
}

func (v *Verb) parseKinds() (err error) {
	if v.Query, err = kindsOf(v.QuerySchemas); err != nil {
		return err
	}
	if v.Body, err = kindsOf(v.BodySchemas); err != nil {
		return err
	}
	v.Shown, err = kindsOf(v.ShownSchemas)
	return err
}
