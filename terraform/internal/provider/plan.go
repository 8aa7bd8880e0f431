package provider

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"svccloud.dev/terraform-provider-svccloud/internal/definition"
	"svccloud.dev/terraform-provider-svccloud/internal/value"
)

// private is what the provider remembers beside the state.
type private struct {
	// Of the creation: the same plan makes one object.
	Key string `json:"key,omitempty"`
	// What no answer shows is not known since then, and is taken over.
	IsImported bool `json:"imported,omitempty"`
}

func privateOf(text []byte) private {
	var remembered private
	// what an older release wrote may be anything
	_ = json.Unmarshal(text, &remembered)
	return remembered
}

func (p private) text() []byte {
	text, _ := json.Marshal(p)
	return text
}

// change is what a plan compares.
type change struct {
	noun    *definition.Noun
	prior   map[string]any
	planned map[string]any
	config  map[string]any
	// The state comes from an import.
	isImported bool
}

// isChanged is true when the attribute will mean something else.
func (c *change) isChanged(name string) bool {
	attribute := c.noun.Attributes[name]
	if attribute.IsSecret && c.prior[name+writeOnlyVersion] != c.planned[name+writeOnlyVersion] {
		return !c.isTakenOver(name)
	}
	if name == labels && hasLabels(c.noun) {
		return !value.Spelling{}.Same(c.prior[labelsAll], c.planned[labelsAll])
	}
	if spellingOf(attribute).Same(c.prior[name], c.planned[name]) {
		return false
	}
	return !c.isTakenOver(name)
}

// isTakenOver is true for what an import could not read, and only another object could have otherwise. What changes in
// place is sent: it may not be so.
func (c *change) isTakenOver(name string) bool {
	attribute := c.noun.Attributes[name]
	return c.isImported && attribute.Replaces && attribute.IsUnread() && c.prior[name] == nil && c.prior[name+writeOnlyVersion] == nil
}

// PlanResourceChange says what an apply would do.
func (s *Server) PlanResourceChange(
	ctx context.Context, request *tfprotov6.PlanResourceChangeRequest,
) (*tfprotov6.PlanResourceChangeResponse, error) {
	resource := s.resources[request.TypeName]
	prior, err := objectOf(request.PriorState, resource.kind)
	if err != nil {
		return nil, err
	}
	proposed, err := objectOf(request.ProposedNewState, resource.kind)
	if err != nil {
		return nil, err
	}
	config, err := objectOf(request.Config, resource.kind)
	if err != nil {
		return nil, err
	}
	response := &tfprotov6.PlanResourceChangeResponse{
		PlannedState: request.ProposedNewState, PlannedPrivate: request.PriorPrivate, PlannedIdentity: request.PriorIdentity,
	}
	if proposed == nil {
		response.Diagnostics = removal(resource.noun, prior)
		return response, nil
	}
	remembered := privateOf(request.PriorPrivate)
	plan := &change{noun: resource.noun, prior: prior, config: config, isImported: remembered.IsImported}
	plan.planned = s.wishes(resource.noun, config, prior)
	if prior == nil {
		remembered = private{Key: newKey()}
		response.Diagnostics = s.askCreation(ctx, plan)
	} else {
		response.RequiresReplace = plan.replacements()
		plan.moveFacts()
		response.Diagnostics = s.judge(ctx, plan, len(response.RequiresReplace) > 0)
	}
	response.PlannedPrivate = remembered.text()
	response.PlannedState, err = dynamicOf(plan.planned, resource.kind)
	return response, err
}

// wishes are the attributes as written, with what follows from that.
func (s *Server) wishes(noun *definition.Noun, config, prior map[string]any) map[string]any {
	planned := map[string]any{timeouts: config[timeouts]}
	for name := range noun.TakeKinds {
		planned[name] = config[name]
	}
	for name, attribute := range noun.Attributes {
		planned[name] = wishOf(noun, name, config[name], prior)
		if attribute.IsSecret {
			planned[name+writeOnlyVersion] = config[name+writeOnlyVersion]
		}
		if attribute.As != "" {
			planned[attribute.As] = orUnknown(prior, attribute.As)
		}
	}
	if hasLabels(noun) {
		planned[labelsAll] = s.withDefaults(planned[labels])
	}
	return planned
}

func wishOf(noun *definition.Noun, name string, written any, prior map[string]any) any {
	attribute := noun.Attributes[name]
	if attribute.Mode == definition.Computed {
		return orUnknown(prior, name)
	}
	if written == nil {
		if left, isKnown := attribute.LeftOut(); isKnown {
			return left
		}
		if attribute.Mode == definition.Chosen || attribute.Mode == definition.Default {
			return orUnknown(prior, name)
		}
		return nil
	}
	key := ""
	if each := noun.EachOf(name); each != nil {
		key = each.Key
	}
	planned := complete(attribute.Kind, attribute.Of, written, prior[name], key)
	if prior[name] != nil && value.IsKnown(planned) && spellingOf(attribute).Same(planned, prior[name]) {
		return prior[name]
	}
	return planned
}

func orUnknown(prior map[string]any, name string) any {
	if prior == nil {
		return value.Unknown
	}
	return prior[name]
}

// replacements are the attributes that only another object can have.
func (c *change) replacements() []*tftypes.AttributePath {
	var paths []*tftypes.AttributePath
	for _, name := range c.noun.AttributeNames() {
		attribute := c.noun.Attributes[name]
		if !attribute.Replaces || !c.isChanged(name) {
			continue
		}
		if attribute.IsSecret && c.prior[name] == c.planned[name] {
			name += writeOnlyVersion
		}
		paths = append(paths, pathOf(name))
	}
	return paths
}

// steps are the changes that the plan needs, in their order.
func (c *change) steps() []*definition.Change {
	var steps []*definition.Change
	for _, step := range c.noun.Changes {
		for name := range setBy(step) {
			if c.isChanged(name) {
				steps = append(steps, step)
				break
			}
		}
	}
	return steps
}

// setBy are the attributes that a change sets, with their fields of its body.
func setBy(step *definition.Change) map[string]string {
	if step.Each != "" {
		return map[string]string{step.Each: definition.Whole}
	}
	return step.Sets
}

// moveFacts makes unknown what follows from the changes.
func (c *change) moveFacts() {
	for _, step := range c.steps() {
		for _, name := range step.Moves {
			if c.config[name] == nil {
				c.planned[name] = value.Unknown
			}
		}
	}
}

// judge refuses what cannot be done, warns of stops, and asks the service.
func (s *Server) judge(ctx context.Context, plan *change, isReplaced bool) []*tfprotov6.Diagnostic {
	if isReplaced {
		return removal(plan.noun, plan.prior)
	}
	var diagnostics []*tfprotov6.Diagnostic
	for _, step := range plan.steps() {
		diagnostics = append(diagnostics, plan.shrinking(step)...)
		diagnostics = append(diagnostics, s.stopping(plan, step)...)
	}
	if len(diagnostics) > 0 {
		return diagnostics
	}
	return s.askChange(ctx, plan)
}

// shrinking refuses smaller values of what only grows.
func (c *change) shrinking(step *definition.Change) []*tfprotov6.Diagnostic {
	if !step.Grows {
		return nil
	}
	var diagnostics []*tfprotov6.Diagnostic
	for name := range step.Sets {
		before, after := c.prior[name], c.planned[name]
		if isLess(after, before) {
			diagnostics = append(diagnostics, refusal(name, name+" can only grow",
				fmt.Sprintf("It is %v, and %v is asked for. Only another %s can be smaller.", before, after, c.noun.Noun)))
		}
	}
	return diagnostics
}

// isLess compares numbers, and versions number by number.
func isLess(one, other any) bool {
	if number, isNumber := one.(float64); isNumber {
		than, isNumber := other.(float64)
		return isNumber && number < than
	}
	left, isText := one.(string)
	right, wasText := other.(string)
	if !isText || !wasText {
		return false
	}
	mine, others := strings.Split(left, "."), strings.Split(right, ".")
	for index := 0; index < min(len(mine), len(others)); index++ {
		number, err := strconv.Atoi(mine[index])
		than, fault := strconv.Atoi(others[index])
		if err != nil || fault != nil {
			return false
		}
		if number != than {
			return number < than
		}
	}
	return false
}

// stopping refuses changes that need a stop, or warns of it where people allow it.
func (s *Server) stopping(plan *change, step *definition.Change) []*tfprotov6.Diagnostic {
	var diagnostics []*tfprotov6.Diagnostic
	for name, needed := range step.Needs {
		if plan.prior[name] == needed {
			continue
		}
		what := fmt.Sprintf("%s %s: %s must be %v meanwhile.", plan.noun.Noun, nameOf(plan.noun, plan.prior), name, needed)
		if s.settings.allowStopping {
			diagnostics = append(diagnostics, warning("", "The change brings about a stop",
				what+fmt.Sprintf(" It becomes %v again afterwards.", plan.planned[name])))
			continue
		}
		for set := range step.Sets {
			diagnostics = append(diagnostics, refusal(set, "The change needs a stop",
				what+" Set allow_stopping = true in the provider block, or bring it about first."))
			break
		}
	}
	return diagnostics
}

// nameOf is what people call an object.
func nameOf(noun *definition.Noun, object map[string]any) string {
	for _, name := range append(append([]string{}, noun.Names...), noun.IDField()) {
		if text, isText := object[name].(string); isText && text != "" {
			return text
		}
	}
	return ""
}

// removal refuses the removal of what is protected, and warns of what nothing deletes.
func removal(noun *definition.Noun, prior map[string]any) []*tfprotov6.Diagnostic {
	if noun.Routes.Remove.Path == "" {
		return []*tfprotov6.Diagnostic{warning("", nameOf(noun, prior)+" is forgotten, and stays",
			fmt.Sprintf("Nothing deletes a %s. A creation of the same takes it over again.", noun.Noun))}
	}
	return protection(noun, prior)
}

// protection refuses the removal of what is protected; the provider never lifts it.
func protection(noun *definition.Noun, prior map[string]any) []*tfprotov6.Diagnostic {
	if prior["is_protected"] != true {
		return nil
	}
	return []*tfprotov6.Diagnostic{refusal("is_protected", nameOf(noun, prior)+" is protected",
		"It would be deleted. Set is_protected = false and apply that first.")}
}

// newKey is a random UUID.
func newKey() string {
	var bytes [16]byte
	// it never fails
	_, _ = rand.Read(bytes[:])
	bytes[6] = bytes[6]&0x0f | 0x40
	bytes[8] = bytes[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", bytes[0:4], bytes[4:6], bytes[6:8], bytes[8:10], bytes[10:16])
}
