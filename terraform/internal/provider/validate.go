package provider

import (
	"context"
	"fmt"
	"regexp"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"svccloud.dev/terraform-provider-svccloud/internal/definition"
	"svccloud.dev/terraform-provider-svccloud/internal/value"
)

// ValidateResourceConfig judges what is written without asking the service.
func (s *Server) ValidateResourceConfig(
	_ context.Context, request *tfprotov6.ValidateResourceConfigRequest,
) (*tfprotov6.ValidateResourceConfigResponse, error) {
	resource := s.resources[request.TypeName]
	config, err := objectOf(request.Config, resource.kind)
	if err != nil {
		return nil, err
	}
	allowed := request.ClientCapabilities != nil && request.ClientCapabilities.WriteOnlyAttributesAllowed
	return &tfprotov6.ValidateResourceConfigResponse{Diagnostics: faultsOf(resource.noun, config, allowed)}, nil
}

func faultsOf(noun *definition.Noun, config map[string]any, allowsWriteOnly bool) []*tfprotov6.Diagnostic {
	var faults []*tfprotov6.Diagnostic
	for _, name := range noun.AttributeNames() {
		attribute := noun.Attributes[name]
		if fault := faultOf(attribute.Kind, config[name]); fault != "" {
			faults = append(faults, refusal(name, name+" is not valid", fault))
		}
		if attribute.IsSecret {
			faults = append(faults, secretFaults(name, attribute, config, allowsWriteOnly)...)
		}
	}
	for _, name := range sortedKinds(noun.TakeKinds) {
		if fault := faultOf(noun.TakeKinds[name], config[name]); fault != "" {
			faults = append(faults, refusal(name, name+" is not valid", fault))
		}
	}
	for _, stage := range stages {
		text, isText := value.ObjectOf(config[timeouts])[stage].(string)
		if _, err := time.ParseDuration(text); isText && err != nil {
			faults = append(faults, refusal(timeouts, stage+" is no duration", "Write it as in 30m or 1h30m."))
		}
	}
	return faults
}

func secretFaults(
	name string, attribute *definition.Attribute, config map[string]any, allowsWriteOnly bool,
) []*tfprotov6.Diagnostic {
	once, plain := config[name+writeOnly], config[name]
	switch {
	case once != nil && !allowsWriteOnly:
		return []*tfprotov6.Diagnostic{refusal(name+writeOnly, "This program has no write-only attributes",
			"Terraform has them from 1.11 on and OpenTofu from 1.11 on. Use "+name+" otherwise; the state shows it.")}
	case once != nil && plain != nil:
		return []*tfprotov6.Diagnostic{refusal(name, "A secret is written twice", "Write "+name+" or "+name+writeOnly+".")}
	case once == nil && plain == nil && attribute.Mode == definition.Required:
		return []*tfprotov6.Diagnostic{refusal(name, "A secret is missing", "Write "+name+" or "+name+writeOnly+".")}
	}
	return nil
}

// faultOf is what is wrong with a value, in words; empty when nothing is.
func faultOf(kind *definition.Kind, written any) string {
	if written == nil || written == value.Unknown {
		return ""
	}
	if len(kind.Values) > 0 {
		for _, each := range kind.Values {
			if each == written {
				return ""
			}
		}
		return fmt.Sprintf("It must be one of %v.", kind.Values)
	}
	switch written := written.(type) {
	case string:
		return textFault(kind, written)
	case float64:
		switch {
		case kind.Minimum != nil && written < *kind.Minimum:
			return fmt.Sprintf("It must be at least %g.", *kind.Minimum)
		case kind.Maximum != nil && written > *kind.Maximum:
			return fmt.Sprintf("It must be at most %g.", *kind.Maximum)
		}
	case []any:
		if fault := lengthFault(kind, len(written), "entries"); fault != "" {
			return fault
		}
		for index, each := range written {
			if fault := faultOf(kind.Element, each); fault != "" {
				return fmt.Sprintf("Entry %d: %s", index+1, fault)
			}
		}
	case map[string]any:
		return membersFault(kind, written)
	}
	return ""
}

func membersFault(kind *definition.Kind, written map[string]any) string {
	for name, each := range written {
		inner := kind.Element
		if member := kind.Members[name]; member != nil {
			inner = member.Kind
		}
		if inner == nil {
			continue
		}
		if fault := faultOf(inner, each); fault != "" {
			return name + ": " + fault
		}
	}
	return ""
}

func textFault(kind *definition.Kind, written string) string {
	if fault := lengthFault(kind, utf8.RuneCountInString(written), "characters"); fault != "" {
		return fault
	}
	// a pattern may have what only JavaScript knows; the service judges those
	if pattern, err := regexp.Compile(kind.Pattern); err == nil && !pattern.MatchString(written) {
		return fmt.Sprintf("It must match %s.", kind.Pattern)
	}
	return ""
}

func lengthFault(kind *definition.Kind, length int, unit string) string {
	switch {
	case kind.Shortest != nil && length < *kind.Shortest:
		return fmt.Sprintf("It must have at least %d %s.", *kind.Shortest, unit)
	case kind.Longest != nil && length > *kind.Longest:
		return fmt.Sprintf("It must have at most %d %s.", *kind.Longest, unit)
	}
	return ""
}
