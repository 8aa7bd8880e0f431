package provider

import (
	"context"
	"fmt"
	"net/http"

	"svccloud.dev/terraform-provider-svccloud/internal/definition"
	"svccloud.dev/terraform-provider-svccloud/internal/service"
	"svccloud.dev/terraform-provider-svccloud/internal/value"
)

// work carries the changes of one object out.
type work struct {
	server *Server
	noun   *definition.Noun
	id     string
	// What is so now; it follows the changes.
	now  map[string]any
	plan *change
}

// call sends a request and waits for its operation.
func (s *Server) call(ctx context.Context, request service.Request) (map[string]any, error) {
	// a request that is on its way is not cut off: only waiting ends
	defer s.hasChanged()
	answer, err := s.client.Send(context.WithoutCancel(ctx), request)
	if err != nil {
		return nil, err
	}
	if operation := service.OperationOf(answer); operation != nil {
		return answer, s.client.Wait(ctx, *operation)
	}
	return answer, nil
}

// callRemoval removes what the request is about, and is content when it has left already.
func (s *Server) callRemoval(ctx context.Context, request service.Request) error {
	defer s.hasChanged()
	answer, err := s.client.SendOwn(context.WithoutCancel(ctx), request)
	if service.IsGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if operation := service.OperationOf(answer); operation != nil {
		return s.client.Wait(ctx, *operation)
	}
	return nil
}

// requestOf is a request to a route about the object.
func requestOf(call *definition.Call, body any, ids ...string) service.Request {
	request := service.Request{Method: call.Method, Path: fill(call.Path, ids...), Body: body}
	if call.Method == http.MethodPost {
		request.Key = newKey()
		if body == nil {
			request.Body = map[string]any{}
		}
	}
	return request
}

// creation is the body of the creation.
func (s *Server) creation(noun *definition.Noun, planned, config map[string]any) map[string]any {
	body := map[string]any{}
	for name, attribute := range noun.Attributes {
		if attribute.Mode == definition.Computed || attribute.Later || name == noun.ParentInPath() {
			continue
		}
		wish := wishSent(noun, name, planned, config)
		if wish == nil || wish == value.Unknown {
			continue
		}
		if attribute.Creates != nil {
			text, _ := wish.(string)
			body[attribute.Creates.Field] = attribute.Creates.Values[text]
			continue
		}
		field := name
		if attribute.Field != "" {
			field = attribute.Field
		}
		body[field] = value.Said(wish)
	}
	return body
}

// creationPath names the parent where the creation does.
func creationPath(noun *definition.Noun, planned map[string]any) string {
	parent, _ := planned[noun.ParentInPath()].(string)
	return fill(noun.Routes.Create.Path, parent)
}

// wishSent is an attribute as requests have it.
func wishSent(noun *definition.Noun, name string, planned, config map[string]any) any {
	if name == labels && hasLabels(noun) {
		return planned[labelsAll]
	}
	if noun.Attributes[name].IsSecret && planned[name] == nil {
		return config[name+writeOnly]
	}
	return planned[name]
}

// carryOut makes the changes in their order. When one fails, what was brought about for it is undone.
func (w *work) carryOut(ctx context.Context) error {
	before := map[string]any{}
	err := w.steps(ctx, before)
	if err == nil {
		return nil
	}
	for name, was := range before {
		if undo := w.bring(ctx, name, was); undo != nil {
			return fmt.Errorf("%w\nAfterwards, %s did not become %v again: %s", err, name, was, undo.Error())
		}
	}
	return err
}

func (w *work) steps(ctx context.Context, before map[string]any) error {
	for _, step := range w.noun.Changes {
		if err := w.step(ctx, step, before); err != nil {
			return err
		}
	}
	return nil
}

func (w *work) step(ctx context.Context, step *definition.Change, before map[string]any) error {
	if step.Each != "" {
		return w.members(ctx, step)
	}
	if step.When != nil {
		for name, wanted := range step.When {
			if w.plan.planned[name] == wanted && w.now[name] != wanted {
				if err := w.readAgain(ctx, name, wanted); err != nil {
					return err
				}
				return w.bring(ctx, name, wanted)
			}
		}
		return nil
	}
	request, isNeeded := w.request(step)
	if !isNeeded {
		return nil
	}
	for name, needed := range step.Needs {
		if w.now[name] == needed {
			continue
		}
		before[name] = w.now[name]
		if err := w.bring(ctx, name, needed); err != nil {
			return err
		}
	}
	if away := w.bringsAboutNull(step); away != nil {
		for name, wanted := range away.When {
			if err := w.readAgain(ctx, name, wanted); err != nil {
				return err
			}
			if !w.differs(name) {
				continue
			}
			if err := w.bring(ctx, name, wanted); err != nil {
				return err
			}
		}
		if request, isNeeded = w.request(step); !isNeeded {
			return nil
		}
	}
	answer, err := w.server.call(ctx, request)
	if err != nil {
		return err
	}
	for name := range step.Sets {
		w.note(name)
	}
	for _, fact := range step.Expects {
		if now, isShown := value.ObjectOf(answer[w.noun.Key])[fact]; isShown {
			w.now[fact] = now
		}
	}
	return nil
}

// readAgain finds out what an attribute is now, before a request takes it away: with a server that was deleted, its
// storages were detached.
func (w *work) readAgain(ctx context.Context, name string, wanted any) error {
	if wanted != nil {
		return nil
	}
	now, err := w.server.read(ctx, w.noun, w.id, w.now, false)
	if err != nil {
		return err
	}
	w.now[name] = now[name]
	return nil
}

// note remembers that an attribute is as planned.
func (w *work) note(name string) {
	w.now[name] = w.plan.planned[name]
	if name == labels && hasLabels(w.noun) {
		w.now[labelsAll] = w.plan.planned[labelsAll]
	}
	if version := name + writeOnlyVersion; w.noun.Attributes[name].IsSecret {
		w.now[version] = w.plan.planned[version]
	}
}

// bring gives an attribute a value for which there is a request.
func (w *work) bring(ctx context.Context, name string, wanted any) error {
	if w.now[name] == wanted {
		return nil
	}
	step := w.noun.BringAbout(name, wanted)
	if step == nil {
		return fmt.Errorf("nothing makes %s %v", name, wanted)
	}
	if _, err := w.server.call(ctx, requestOf(step.By, nil, w.id)); err != nil {
		return err
	}
	w.now[name] = wanted
	return nil
}

// bringsAboutNull answers the change that has to come before one that sets the same attribute: attached elsewhere, it
// is detached first.
func (w *work) bringsAboutNull(step *definition.Change) *definition.Change {
	for name := range step.Sets {
		if w.now[name] != nil && w.differs(name) {
			if away := w.noun.BringAbout(name, nil); away != nil {
				return away
			}
		}
	}
	return nil
}

// differs is true while an attribute is not as planned.
func (w *work) differs(name string) bool {
	compared := &change{
		noun: w.noun, prior: w.now, planned: w.plan.planned, config: w.plan.config, isImported: w.plan.isImported,
	}
	return w.plan.planned[name] != value.Unknown && compared.isChanged(name)
}

// request is what a change sends, and whether it is needed.
func (w *work) request(step *definition.Change) (service.Request, bool) {
	if step.By == nil || step.Sets == nil {
		return service.Request{}, false
	}
	body := map[string]any{}
	isNeeded := false
	for name, field := range step.Sets {
		differs := w.differs(name)
		wish := wishSent(w.noun, name, w.plan.planned, w.plan.config)
		if wish == nil && w.noun.BringAbout(name, nil) != nil {
			// another request takes it away
			continue
		}
		isNeeded = isNeeded || differs
		isFreed := w.isFreed(name)
		switch {
		case field == definition.Whole:
			body = value.ObjectOf(value.Said(wish))
			if wish == nil {
				body = off(w.noun.Attributes[name].Kind)
			}
		case differs, isFreed, step.By.Method != http.MethodPatch && wish != nil && wish != value.Unknown:
			body[field] = value.Said(wish)
		}
	}
	for _, fact := range step.Expects {
		body[fact] = w.now[fact]
	}
	id := w.id
	if step.On != "" {
		id, _ = w.now[step.On].(string)
	}
	return requestOf(step.By, body, id), isNeeded
}

// isFreed is true for what the service chose until now: it may be anything.
func (w *work) isFreed(name string) bool {
	free := w.noun.Attributes[name].FreeWith
	return free != "" && w.now[free] != nil && w.plan.planned[free] == nil
}

// members removes and adds members one by one; one that is otherwise than planned is removed and added again.
func (w *work) members(ctx context.Context, step *definition.Change) error {
	if !w.differs(step.Each) {
		return nil
	}
	before, after := value.ListOf(w.now[step.Each]), value.ListOf(w.plan.planned[step.Each])
	for _, member := range before {
		if wanted := withKey(after, keyOf(member, step.Key), step.Key); wanted != nil && agrees(value.Said(wanted), member) {
			continue
		}
		if err := w.removeMember(ctx, step, keyOf(member, step.Key)); err != nil {
			return err
		}
	}
	for _, member := range after {
		if is := withKey(before, keyOf(member, step.Key), step.Key); is != nil && agrees(value.Said(member), is) {
			continue
		}
		body, isObject := value.Said(member).(map[string]any)
		if !isObject {
			body = map[string]any{step.Key: member}
		}
		if _, err := w.server.call(ctx, requestOf(step.Add, body, w.id)); err != nil {
			return err
		}
	}
	w.note(step.Each)
	return nil
}

func withKey(list []any, wanted any, key string) any {
	for _, member := range list {
		if keyOf(member, key) == wanted {
			return member
		}
	}
	return nil
}

// removeMember finds the member's id, which is its key where nothing lists it, and removes it; one that has left already
// is removed.
func (w *work) removeMember(ctx context.Context, step *definition.Change, wanted any) error {
	if step.List == nil {
		id, _ := wanted.(string)
		return w.server.callRemoval(ctx, requestOf(step.Remove, nil, w.id, id))
	}
	items, err := w.server.client.Items(ctx, fill(step.List.Path, w.id), nil)
	if err != nil {
		return err
	}
	for _, item := range items {
		if item[step.Key] != wanted {
			continue
		}
		id, _ := item["id"].(string)
		if id == "" {
			id, _ = wanted.(string)
		}
		return w.server.callRemoval(ctx, requestOf(step.Remove, nil, w.id, id))
	}
	return nil
}
