package provider

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"svccloud.dev/terraform-provider-svccloud/internal/definition"
	"svccloud.dev/terraform-provider-svccloud/internal/service"
)

func pathOf(name string) *tftypes.AttributePath {
	if name == "" {
		return nil
	}
	return tftypes.NewAttributePath().WithAttributeName(name)
}

// refusal is an error at an attribute; at the whole when it has no name.
func refusal(name, summary, detail string) *tfprotov6.Diagnostic {
	return &tfprotov6.Diagnostic{
		Severity: tfprotov6.DiagnosticSeverityError, Summary: summary, Detail: detail, Attribute: pathOf(name),
	}
}

func warning(name, summary, detail string) *tfprotov6.Diagnostic {
	diagnostic := refusal(name, summary, detail)
	diagnostic.Severity = tfprotov6.DiagnosticSeverityWarning
	return diagnostic
}

// diagnosticsOf says what went wrong, at the attributes that the service names.
func diagnosticsOf(noun *definition.Noun, doing string, err error) []*tfprotov6.Diagnostic {
	var problem *service.Problem
	if !errors.As(err, &problem) {
		return []*tfprotov6.Diagnostic{refusal("", doing+" did not succeed", err.Error())}
	}
	return refusals(noun, fmt.Sprintf("%s was refused: %s", doing, problem.Title), problem)
}

// refusals are what the service says, at the attributes that it names.
func refusals(noun *definition.Noun, summary string, problem *service.Problem) []*tfprotov6.Diagnostic {
	var diagnostics []*tfprotov6.Diagnostic
	for _, each := range problem.Errors {
		if name := attributeOfField(noun, each.Field); name != "" {
			diagnostics = append(diagnostics, refusal(name, summary, each.Detail))
		}
	}
	if len(diagnostics) > 0 {
		return diagnostics
	}
	detail := problem.Error()
	if problem.Reason == "name_taken" && problem.Resource != nil && problem.Resource.Type == noun.Noun {
		address := problem.Resource.ID
		if noun.IsPart() {
			address = strings.ToUpper(noun.Parent.Field) + "/" + address
		}
		detail += fmt.Sprintf("\nTo keep what is there: terraform import %s%s.NAME %s", prefix, noun.Noun, address)
	}
	return []*tfprotov6.Diagnostic{refusal("", summary, detail)}
}

// attributeOfField is the attribute that a field of a body belongs to; empty when there is none.
func attributeOfField(noun *definition.Noun, field string) string {
	first := strings.FieldsFunc(field, func(letter rune) bool { return letter == '.' || letter == '[' })
	if len(first) == 0 {
		return ""
	}
	if _, isThere := noun.Attributes[first[0]]; isThere {
		return first[0]
	}
	for name, attribute := range noun.Attributes {
		if attribute.Creates != nil && attribute.Creates.Field == first[0] {
			return name
		}
	}
	for _, change := range noun.Changes {
		for name, sent := range change.Sets {
			if sent == first[0] {
				return name
			}
		}
	}
	return ""
}
