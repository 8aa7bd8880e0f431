// Three servers with an SSH key and a network: made, waited for, listed, deleted.
package main

import (
	"context"
	"fmt"
	"log"

	"svccloud.dev/svccloud-go"
	"svccloud.dev/svccloud-go/api"
)

const publicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIH6dHFPrzE3zVw5LO8u0P6Yg0h2uQnP0mCFc9PzG1mYx other@example.com"

func main() {
	ctx := context.Background()
	cloud := must(svccloud.Connect(svccloud.Options{}))
	key := must(cloud.CreateSshKeyWithResponse(ctx, nil, api.CreateSshKey{Name: "go", PublicKey: publicKey})).JSON201.SshKey
	made := must(cloud.CreateNetworkWithResponse(ctx, nil, api.CreateNetwork{Name: "go", Zone: "eu-1a"})).JSON202
	must(cloud.WaitForOperation(ctx, made.Operation.Id))

	var servers []api.Server
	var operations []string
	for number := range 3 {
		started := must(cloud.CreateServerWithResponse(ctx, nil, api.CreateServer{
			Hostname: fmt.Sprintf("go-%d", number), Zone: "eu-1a", Plan: "tiny", Template: new("tiny-linux"),
			SshKeyIds: &[]string{key.Id}, Networks: &[]api.AttachNetwork{{NetworkId: made.Network.Id}},
		})).JSON202
		servers, operations = append(servers, started.Server), append(operations, started.Operation.Id)
	}
	for _, id := range operations {
		must(cloud.WaitForOperation(ctx, id))
	}
	for server, err := range svccloud.Pages(func(cursor *string) ([]api.Server, *string, error) {
		page, err := cloud.ListServersWithResponse(ctx, &api.ListServersParams{Cursor: cursor})
		if err != nil {
			return nil, nil, err
		}
		return page.JSON200.Items, page.JSON200.NextCursor, nil
	}) {
		fmt.Println(must(server, err).Hostname, server.State)
	}

	operations = nil
	for _, server := range servers {
		operations = append(operations, must(cloud.DeleteServerWithResponse(ctx, server.Id, nil)).JSON202.Operation.Id)
	}
	for _, id := range operations {
		must(cloud.WaitForOperation(ctx, id))
	}
	end := must(cloud.DeleteNetworkWithResponse(ctx, made.Network.Id)).JSON202
	must(cloud.WaitForOperation(ctx, end.Operation.Id))
	must(cloud.DeleteSshKeyWithResponse(ctx, key.Id))
}

func must[Value any](value Value, err error) Value {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
