package provider

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"svccloud.dev/terraform-provider-svccloud/internal/definition"
	"svccloud.dev/terraform-provider-svccloud/internal/service"
	"svccloud.dev/terraform-provider-svccloud/internal/value"
)

// read answers an object as its attributes; a *service.Gone when there is none. Where what is shown means
// the same as what was there before, the words of before stay. Without before, the object is new to Terraform.
func (s *Server) read(
	ctx context.Context, noun *definition.Noun, id string, before map[string]any, isNew bool,
) (map[string]any, error) {
	return s.readAfter(ctx, noun, id, before, isNew, true)
}

// readAfter is read; what is not fresh may be some seconds old, unless this provider has changed something since.
func (s *Server) readAfter(
	ctx context.Context, noun *definition.Noun, id string, before map[string]any, isNew, isFresh bool,
) (map[string]any, error) {
	listed, err := s.item(ctx, noun, id, isFresh)
	if err != nil {
		return nil, err
	}
	shown := copyOf(listed)
	if listed == nil {
		if shown, err = s.readOwn(ctx, noun, id); err != nil {
			return nil, err
		}
	}
	for name := range noun.Attributes {
		call := noun.ReadApart(name)
		if call == nil {
			continue
		}
		if part, isListed := shownAt(listed, name, noun.ListedAt(name)); isListed && noun.ListedAt(name) != "" {
			shown[name] = partOf(noun, name, part)
			continue
		}
		if shown[name], err = s.readApart(ctx, noun, name, call, id); err != nil {
			return nil, err
		}
	}
	return s.attributesShown(noun, shown, before, isNew), nil
}

// readOwn answers what the object's request shows.
func (s *Server) readOwn(ctx context.Context, noun *definition.Noun, id string) (map[string]any, error) {
	if noun.Routes.Read.Path == "" {
		return s.readListed(ctx, noun, id)
	}
	path := fill(noun.Routes.Read.Path, id)
	answer, err := s.client.SendOwn(ctx, service.Request{Method: noun.Routes.Read.Method, Path: path})
	if err != nil {
		return nil, err
	}
	shown := value.ObjectOf(answer[noun.Key])
	if _, own := split(noun, id); shown[noun.IDField()] != own {
		return nil, fmt.Errorf("the answer of %s has no %s with this id", path, noun.Noun)
	}
	return shown, nil
}

// readApart answers an attribute that the view lacks.
func (s *Server) readApart(
	ctx context.Context, noun *definition.Noun, name string, call *definition.Call, id string,
) (any, error) {
	if change := noun.EachOf(name); change != nil {
		members, err := s.client.Items(ctx, fill(call.Path, id), nil)
		if err != nil {
			return nil, err
		}
		list := make([]any, len(members))
		for index, member := range members {
			list[index] = member
		}
		return partOf(noun, name, list), nil
	}
	answer, err := s.client.Send(ctx, service.Request{Method: http.MethodGet, Path: fill(call.Path, id)})
	if err != nil {
		return nil, err
	}
	for _, part := range answer {
		if object, isObject := part.(map[string]any); isObject {
			return object, nil
		}
	}
	return answer, nil
}

// partOf is an attribute that another request shows: of a list, only the members that have a key.
func partOf(noun *definition.Noun, name string, shown any) any {
	change := noun.EachOf(name)
	if change == nil {
		return shown
	}
	list := []any{}
	for _, each := range value.ListOf(shown) {
		member := value.ObjectOf(each)
		switch {
		case member[change.Key] == nil:
		case noun.Attributes[name].Kind.Element.Type == definition.Object:
			list = append(list, member)
		default:
			list = append(list, member[change.Key])
		}
	}
	return list
}

// attributesShown makes attributes of what the service shows.
func (s *Server) attributesShown(noun *definition.Noun, shown, before map[string]any, isNew bool) map[string]any {
	attributes := map[string]any{timeouts: before[timeouts]}
	for name := range noun.TakeKinds {
		attributes[name] = before[name]
	}
	for name, attribute := range noun.Attributes {
		if attribute.IsSecret {
			attributes[name+writeOnlyVersion] = before[name+writeOnlyVersion]
		}
		if attribute.IsPresence() {
			attributes[name] = shown[name] != nil
			attributes[attribute.As] = shown[name]
			continue
		}
		attributes[name] = attributeShown(noun, name, shown, before, isNew)
	}
	if hasLabels(noun) {
		all := value.ObjectOf(attributes[labels])
		attributes[labelsAll] = all
		attributes[labels] = s.withoutDefaults(all, value.ObjectOf(before[labels]), value.ObjectOf(before[labelsAll]))
	}
	return attributes
}

func attributeShown(noun *definition.Noun, name string, shown, before map[string]any, isNew bool) any {
	attribute := noun.Attributes[name]
	answer, isShown := shownAt(shown, name, attribute.At)
	switch {
	case attribute.NullWithout != "" && shown[attribute.NullWithout] == nil:
		return before[name]
	case attribute.NullWith != "" && shown[attribute.NullWith] != nil:
		return nil
	case attribute.IsUnread(), attribute.IsSecret, !isShown:
		return before[name]
	case attribute.FreeWith != "" && shown[attribute.FreeWith] != nil && before[name] != nil:
		return before[name]
	case attribute.IsOptional && before[name] == nil && !isNew:
		return nil
	case before[name] == nil && isOff(attribute.Kind, answer) && attribute.Mode == definition.Optional:
		return nil
	}
	key := ""
	if change := noun.EachOf(name); change != nil {
		key = change.Key
	}
	now := project(attribute.Kind, answer, before[name], key)
	if spellingOf(attribute).Same(now, before[name]) {
		return before[name]
	}
	return now
}

// shownAt is what the view shows under a name, or at a place: the field of an object, or of each member of a list.
func shownAt(shown map[string]any, name, place string) (any, bool) {
	outer, field, isInside := strings.Cut(place, ".")
	if !isInside {
		if place != "" {
			name = place
		}
		answer, isShown := shown[name]
		return answer, isShown
	}
	switch parts := shown[outer].(type) {
	case map[string]any:
		answer, isShown := parts[field]
		return answer, isShown
	case []any:
		list := make([]any, len(parts))
		for index, part := range parts {
			list[index] = value.ObjectOf(part)[field]
		}
		return list, true
	}
	return nil, false
}

func spellingOf(attribute *definition.Attribute) value.Spelling {
	spelling := value.Spelling{Equal: attribute.Same, IsSet: attribute.IsSet}
	if len(attribute.Of) > 0 {
		spelling.Of = map[string]value.Spelling{}
		for name, member := range attribute.Of {
			spelling.Of[name] = spellingOf(member)
		}
	}
	return spelling
}

// isOff is true for an object whose required switches are all false: what nobody wrote is off.
func isOff(kind *definition.Kind, shown any) bool {
	object, isObject := shown.(map[string]any)
	if kind.Type != definition.Object || !isObject {
		return false
	}
	switches := 0
	for name, member := range kind.Members {
		if !member.IsRequired {
			continue
		}
		if member.Type != definition.Bool || object[name] != false {
			return false
		}
		switches++
	}
	return switches > 0
}

// off is the object whose required switches are false.
func off(kind *definition.Kind) map[string]any {
	object := map[string]any{}
	for name, member := range kind.Members {
		if member.IsRequired && member.Type == definition.Bool {
			object[name] = false
		}
	}
	return object
}

// project keeps the members that the kind has, and those of before where nothing is shown. Members of a list with a key
// stay in their order.
func project(kind *definition.Kind, shown, before any, key string) any {
	switch kind.Type {
	case definition.Object:
		object, isObject := shown.(map[string]any)
		if !isObject {
			return nil
		}
		known := value.ObjectOf(before)
		projected := map[string]any{}
		for name, member := range kind.Members {
			if answer, isShown := object[name]; isShown {
				projected[name] = project(member.Kind, answer, known[name], "")
			} else {
				projected[name] = known[name]
			}
		}
		return projected
	case definition.List:
		list, isList := shown.([]any)
		if !isList {
			return nil
		}
		return projectList(kind.Element, list, value.ListOf(before), key)
	case definition.Map:
		object, isObject := shown.(map[string]any)
		if !isObject {
			return nil
		}
		known := value.ObjectOf(before)
		projected := map[string]any{}
		for name, each := range object {
			projected[name] = project(kind.Element, each, known[name], "")
		}
		return projected
	}
	return shown
}

func projectList(kind *definition.Kind, shown, before []any, key string) []any {
	if key != "" {
		shown = inOrder(shown, before, key)
	}
	projected := make([]any, len(shown))
	for index, each := range shown {
		var known any
		if index < len(before) {
			known = before[index]
		}
		projected[index] = project(kind, each, known, "")
	}
	return projected
}

// inOrder puts members first that were there before, in the order of before.
func inOrder(shown, before []any, key string) []any {
	left := append([]any{}, shown...)
	ordered := make([]any, 0, len(shown))
	for _, known := range before {
		for at, each := range left {
			if each != nil && keyOf(each, key) == keyOf(known, key) {
				ordered = append(ordered, each)
				left[at] = nil
				break
			}
		}
	}
	for _, each := range left {
		if each != nil {
			ordered = append(ordered, each)
		}
	}
	return ordered
}

// keyOf is what makes a member the same one: its field, or itself when it is a plain value.
func keyOf(member any, key string) any {
	if object, isObject := member.(map[string]any); isObject {
		return object[key]
	}
	return member
}

// withoutDefaults leaves out the default labels that nobody wrote at the resource.
func (s *Server) withoutDefaults(all, written, before map[string]any) map[string]any {
	own := map[string]any{}
	for name, text := range all {
		_, isWritten := written[name]
		isDefault := s.settings.defaultLabels[name] == text
		if s.settings.isUnknown {
			// as it was
			isDefault = before[name] == text
		}
		if isWritten || !isDefault {
			own[name] = text
		}
	}
	return own
}

// withDefaults adds the default labels.
func (s *Server) withDefaults(written any) any {
	if written == value.Unknown || s.settings.isUnknown {
		return value.Unknown
	}
	all := map[string]any{}
	for _, some := range []map[string]any{s.settings.defaultLabels, value.ObjectOf(written)} {
		for name, text := range some {
			all[name] = text
		}
	}
	return all
}

// fill puts ids in the place of the parameters of a path, in their order; the first may be the address of a part.
func fill(path string, ids ...string) string {
	if strings.Count(path, "{") > len(ids) && len(ids) > 0 {
		ids = append(strings.SplitN(ids[0], "/", 2), ids[1:]...)
	}
	for _, id := range ids {
		start, end := strings.Index(path, "{"), strings.Index(path, "}")
		if start < 0 || end < start {
			return path
		}
		path = path[:start] + url.PathEscape(id) + path[end+1:]
	}
	return path
}
