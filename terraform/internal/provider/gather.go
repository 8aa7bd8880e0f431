package provider

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"svccloud.dev/terraform-provider-svccloud/internal/definition"
	"svccloud.dev/terraform-provider-svccloud/internal/service"
)

const (
	// Reads that come within this time are taken together.
	gatherTime = 15 * time.Millisecond
	// So many of a noun, within a second, are taken from the pages of its list.
	readsForPages = 5
	// Pages stay as long, until this provider changes something.
	pagesTime = 5 * time.Second
	// The objects of an account of which one page more would be too much for a few reads.
	gatheredPagesMost = 10
	// As the filter of lists takes them.
	idsMost = 50
)

// gathering takes reads of single objects together.
type gathering struct {
	mutex sync.Mutex
	nouns map[string]*gathered
	// Increases with every change.
	changes atomic.Int64
}

// gathered are the reads of a noun.
type gathered struct {
	mutex      sync.Mutex
	collecting *batch
	items      map[string]map[string]any
	// When the items were read, and after how many changes.
	at      time.Time
	changes int64
	// Only a part of the account is in the pages.
	isCut bool
	// Reads of this second.
	second time.Time
	reads  int
	// Held while pages are read.
	pages sync.Mutex
}

// batch are reads that are answered together.
type batch struct {
	ids     map[string]bool
	isFresh bool
	done    chan struct{}
	items   map[string]map[string]any
	err     error
}

func (g *gathering) of(noun *definition.Noun) *gathered {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.nouns == nil {
		g.nouns = map[string]*gathered{}
	}
	if g.nouns[noun.Noun] == nil {
		g.nouns[noun.Noun] = &gathered{}
	}
	return g.nouns[noun.Noun]
}

// isGathered is true for nouns whose list shows all that a read does.
func isGathered(noun *definition.Noun) bool {
	return noun.Routes.List.Whole && noun.Identity == "" && noun.Routes.List.Path+"/{id}" == noun.Routes.Read.Path
}

// item answers an object as its list shows it; nil when the object has to be read by itself. A fresh one is read after
// this call.
func (s *Server) item(ctx context.Context, noun *definition.Noun, id string, isFresh bool) (map[string]any, error) {
	if !isGathered(noun) {
		return nil, nil
	}
	of := s.gathering.of(noun)
	of.mutex.Lock()
	if known := of.known(s.gathering.changes.Load()); !isFresh && known[id] != nil {
		of.mutex.Unlock()
		return known[id], nil
	}
	joined := of.collecting
	if joined == nil || joined.isFresh != isFresh || len(joined.ids) >= idsMost {
		joined = &batch{ids: map[string]bool{}, isFresh: isFresh, done: make(chan struct{})}
		of.collecting = joined
		go s.load(context.WithoutCancel(ctx), noun, of, joined)
	}
	joined.ids[id] = true
	of.mutex.Unlock()
	select {
	case <-joined.done:
		return joined.items[id], joined.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// known are the items of the pages, while nothing has changed.
func (of *gathered) known(changes int64) map[string]map[string]any {
	if of.changes != changes || time.Since(of.at) > pagesTime {
		return nil
	}
	return of.items
}

// load answers a batch once its time is over.
func (s *Server) load(ctx context.Context, noun *definition.Noun, of *gathered, read *batch) {
	defer close(read.done)
	time.Sleep(gatherTime)
	of.mutex.Lock()
	if of.collecting == read {
		of.collecting = nil
	}
	if time.Since(of.second) > time.Second {
		of.second, of.reads = time.Now(), 0
	}
	of.reads += len(read.ids)
	byPages := !read.isFresh && !of.isCut && of.reads >= readsForPages
	of.mutex.Unlock()
	var err error
	switch {
	case byPages:
		read.items, err = s.pagesOf(ctx, noun, of)
	case len(read.ids) > 1, noun.Included() != "":
		read.items, err = s.itemsOf(ctx, noun, read.ids)
	}
	var problem *service.Problem
	if !errors.As(err, &problem) {
		// a refusal of the list is none of the object
		read.err = err
	}
}

// pagesOf are the first pages of a noun, by id.
func (s *Server) pagesOf(
	ctx context.Context, noun *definition.Noun, of *gathered,
) (map[string]map[string]any, error) {
	of.pages.Lock()
	defer of.pages.Unlock()
	changes := s.gathering.changes.Load()
	of.mutex.Lock()
	known := of.known(changes)
	of.mutex.Unlock()
	if known != nil {
		return known, nil
	}
	listed, isWhole, err := s.client.FirstItems(ctx, noun.Routes.List.Path, wholeQuery(noun), gatheredPagesMost)
	if err != nil {
		return nil, err
	}
	items := byID(listed)
	of.mutex.Lock()
	defer of.mutex.Unlock()
	of.items, of.at, of.changes, of.isCut = items, time.Now(), changes, !isWhole
	return items, nil
}

// itemsOf are the objects with these ids, where the list can say so.
func (s *Server) itemsOf(
	ctx context.Context, noun *definition.Noun, ids map[string]bool,
) (map[string]map[string]any, error) {
	if !slices.Contains(noun.Routes.List.Takes, "id") {
		return nil, nil
	}
	query := wholeQuery(noun)
	for id := range ids {
		query.Add("id", id)
	}
	listed, err := s.client.Items(ctx, noun.Routes.List.Path, query)
	return byID(listed), err
}

// wholeQuery asks for long pages whose items show everything.
func wholeQuery(noun *definition.Noun) url.Values {
	query := url.Values{}
	if slices.Contains(noun.Routes.List.Takes, "limit") {
		query.Set("limit", pageSize)
	}
	if included := noun.Included(); included != "" {
		query.Set("include", included)
	}
	return query
}

func byID(items []map[string]any) map[string]map[string]any {
	found := make(map[string]map[string]any, len(items))
	for _, item := range items {
		if id, isText := item["id"].(string); isText {
			found[id] = item
		}
	}
	return found
}

// hasChanged drops what was read before.
func (s *Server) hasChanged() { s.gathering.changes.Add(1) }
