package provider

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"svccloud.dev/terraform-provider-svccloud/internal/definition"
	"svccloud.dev/terraform-provider-svccloud/internal/service"
	"svccloud.dev/terraform-provider-svccloud/internal/value"
)

// lookPause is the time between two looks at what has no operation; tests shorten it.
var lookPause = 2 * time.Second

// split answers the id of the parent, which is empty without one, and its own.
func split(noun *definition.Noun, address string) (parent, own string) {
	if !noun.IsPart() {
		return "", address
	}
	parent, own, _ = strings.Cut(address, "/")
	return parent, own
}

// located are the attributes of the address of what was made: an answer may not repeat the parent.
func located(plan *change, made map[string]any) map[string]any {
	attributes := copyOf(made)
	if plan.noun.IsPart() {
		attributes[plan.noun.Parent.Field] = plan.planned[plan.noun.Parent.Field]
	}
	return attributes
}

// findPart answers the address of a part: PARENT/PART, each by its id or its name.
func (s *Server) findPart(ctx context.Context, noun *definition.Noun, wanted string) (string, error) {
	at := strings.LastIndex(wanted, "/")
	above := s.resources[prefix+noun.Parent.Refers]
	if at < 0 || above == nil {
		return "", fmt.Errorf("say which %s of which %s: %s/%s", noun.Noun, noun.Parent.Refers,
			strings.ToUpper(noun.Parent.Refers), strings.ToUpper(noun.Noun))
	}
	parent, err := s.find(ctx, above.noun, wanted[:at])
	if err != nil {
		return "", err
	}
	items, err := s.listed(ctx, noun, parent)
	if err != nil {
		return "", err
	}
	own, err := theOne(noun, items, wanted[at+1:])
	return parent + "/" + own, err
}

// listed answers all of a noun; of the parent, where it is a part. A parent that is gone has none.
func (s *Server) listed(ctx context.Context, noun *definition.Noun, parent string) ([]map[string]any, error) {
	if noun.Routes.List.Path != "" {
		return s.client.Items(ctx, fill(noun.Routes.List.Path, parent), nil)
	}
	shownIn := noun.Parent.ShownIn
	answer, err := s.client.SendOwn(ctx, service.Request{Method: http.MethodGet, Path: fill(shownIn.Read.Path, parent)})
	if err != nil {
		return nil, err
	}
	for _, each := range answer {
		if list, isList := value.ObjectOf(each)[shownIn.Field].([]any); isList {
			items := make([]map[string]any, len(list))
			for index, item := range list {
				items[index] = value.ObjectOf(item)
			}
			return items, nil
		}
	}
	return nil, fmt.Errorf("the answer of %s has no %s", shownIn.Read.ID, shownIn.Field)
}

// readListed finds an object that no request reads in its list: a complete list without it says that it is gone.
func (s *Server) readListed(ctx context.Context, noun *definition.Noun, address string) (map[string]any, error) {
	parent, own := split(noun, address)
	items, err := s.listed(ctx, noun, parent)
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		if item[noun.IDField()] == own {
			return copyOf(item), nil
		}
	}
	return nil, &service.Gone{Problem: &service.Problem{
		Status: http.StatusNotFound, Title: http.StatusText(http.StatusNotFound), Detail: "No such " + noun.Noun + ".",
	}}
}

// untilReady waits for what gets ready without an operation. It fails by itself when it takes too long.
func (s *Server) untilReady(ctx context.Context, noun *definition.Noun, address string) error {
	ready := noun.Ready
	if ready == nil {
		return nil
	}
	for {
		shown, err := s.readOwn(ctx, noun, address)
		switch {
		case err != nil:
			return err
		case shown[ready.Field] == ready.Is:
			return nil
		case shown[ready.Field] == ready.Failed:
			return fmt.Errorf("its %s is %s", ready.Field, ready.Failed)
		}
		if err := rest(ctx); err != nil {
			return fmt.Errorf("its %s is still %v; it goes on without being waited for: %w", ready.Field, shown[ready.Field], err)
		}
	}
}

// untilGone waits for the end of what has no operations.
func (s *Server) untilGone(ctx context.Context, noun *definition.Noun, address string) error {
	for noun.Ready != nil {
		_, err := s.readOwn(ctx, noun, address)
		if service.IsGone(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := rest(ctx); err != nil {
			return fmt.Errorf("it is still there; its deletion goes on without being waited for: %w", err)
		}
	}
	return nil
}

func rest(ctx context.Context) error {
	timer := time.NewTimer(lookPause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
