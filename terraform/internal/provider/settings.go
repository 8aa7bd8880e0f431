package provider

import (
	"context"
	"net/url"
	"os"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"svccloud.dev/terraform-provider-svccloud/internal/service"
	"svccloud.dev/terraform-provider-svccloud/internal/value"
)

const defaultEndpoint = "http://127.0.0.1:8080"

// settings are those of the provider block.
type settings struct {
	defaultLabels map[string]any
	// They follow from other changes; labels_all does so too then.
	isUnknown     bool
	allowStopping bool
	dryRun        bool
}

var settingsSchema = &tfprotov6.Schema{Block: &tfprotov6.SchemaBlock{Attributes: []*tfprotov6.SchemaAttribute{
	{Name: "endpoint", Type: tftypes.String, Optional: true,
		Description: "URL of the service, without /v1. SVCCLOUD_URL when left out, else " + defaultEndpoint + "."},
	{Name: "token", Type: tftypes.String, Optional: true, Sensitive: true,
		Description: "API token. SVCCLOUD_TOKEN when left out."},
	{Name: "default_labels", Type: tftypes.Map{ElementType: tftypes.String}, Optional: true,
		Description: "Labels of every resource that has labels."},
	{Name: "allow_stopping", Type: tftypes.Bool, Optional: true,
		Description: "Whether a change may stop what has to be stopped for it. False when left out."},
	{Name: "dry_run", Type: tftypes.Bool, Optional: true,
		Description: "Whether plans ask the service if it would accept each change. True when left out."},
}}}

// ValidateProviderConfig accepts what the schema accepts.
func (s *Server) ValidateProviderConfig(
	_ context.Context, request *tfprotov6.ValidateProviderConfigRequest,
) (*tfprotov6.ValidateProviderConfigResponse, error) {
	return &tfprotov6.ValidateProviderConfigResponse{PreparedConfig: request.Config}, nil
}

// ConfigureProvider makes the client. Where the service is, and who asks, has to be known: the variables may say another
// account.
func (s *Server) ConfigureProvider(
	_ context.Context, request *tfprotov6.ConfigureProviderRequest,
) (*tfprotov6.ConfigureProviderResponse, error) {
	config, err := objectOf(request.Config, settingsSchema.ValueType())
	if err != nil {
		return nil, err
	}
	text := func(name, variable, otherwise string) string {
		if written, isText := config[name].(string); isText {
			return written
		}
		if set := os.Getenv(variable); set != "" {
			return set
		}
		return otherwise
	}
	endpoint, token := text("endpoint", "SVCCLOUD_URL", defaultEndpoint), text("token", "SVCCLOUD_TOKEN", "")
	response := &tfprotov6.ConfigureProviderResponse{}
	for _, name := range []string{"endpoint", "token"} {
		if config[name] == value.Unknown {
			response.Diagnostics = append(response.Diagnostics, refusal(name, name+" is not known yet",
				"It follows from another change. Apply that first, with -target, or keep it in another configuration."))
		}
	}
	if len(response.Diagnostics) > 0 {
		return response, nil
	}
	if address, err := url.Parse(endpoint); err != nil || address.Host == "" || !strings.HasPrefix(address.Scheme, "http") {
		response.Diagnostics = append(response.Diagnostics, refusal("endpoint", "This is not the URL of a service",
			endpoint+" must start with http:// or https://."))
	}
	if token == "" {
		response.Diagnostics = append(response.Diagnostics, refusal("token", "There is no API token",
			"Set token in the provider block, or SVCCLOUD_TOKEN."))
	}
	stopping, _ := config["allow_stopping"].(bool)
	dryRun, isSaid := config["dry_run"].(bool)
	s.settings = settings{
		defaultLabels: value.ObjectOf(value.Settled(config["default_labels"])),
		isUnknown:     !value.IsKnown(config["default_labels"]),
		allowStopping: stopping,
		dryRun:        dryRun || !isSaid,
	}
	s.client = service.NewClient(endpoint, token, "terraform-provider-svccloud/"+s.version)
	return response, nil
}

// StopProvider ends nothing that has begun: what waits goes on, and a second interrupt kills the process.
func (s *Server) StopProvider(
	context.Context, *tfprotov6.StopProviderRequest,
) (*tfprotov6.StopProviderResponse, error) {
	return &tfprotov6.StopProviderResponse{}, nil
}
