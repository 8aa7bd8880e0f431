"""Three servers with an SSH key and a network: made, waited for, listed, deleted."""

import svccloud
from svccloud import pages, unwrap, wait_for_operation
from svccloud.api.networks import create_network, delete_network
from svccloud.api.servers import create_server, delete_server, list_servers
from svccloud.api.ssh_keys import create_ssh_key, delete_ssh_key
from svccloud.models import AttachNetwork, CreateNetwork, CreateServer, CreateSshKey

PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHzEI+cZXn4/cnHZX9MkBuVS/h9atGE+CFLXOHCnrJIP me@laptop"

cloud = svccloud.connect()
key = unwrap(
    create_ssh_key.sync_detailed(client=cloud, body=CreateSshKey(name="python", public_key=PUBLIC_KEY))
).ssh_key
made = unwrap(create_network.sync_detailed(client=cloud, body=CreateNetwork(name="python", zone="eu-1a")))
wait_for_operation(cloud, made.operation.id)

servers = [
    CreateServer(
        hostname=f"python-{number}",
        zone="eu-1a",
        plan="tiny",
        template="tiny-linux",
        ssh_key_ids=[key.id],
        networks=[AttachNetwork(network_id=made.network.id)],
    )
    for number in range(3)
]
started = [unwrap(create_server.sync_detailed(client=cloud, body=server)) for server in servers]
for each in started:
    wait_for_operation(cloud, each.operation.id)
for server in pages(lambda query: list_servers.sync_detailed(client=cloud, **query)):
    print(server.hostname, server.state)

ends = [unwrap(delete_server.sync_detailed(each.server.id, client=cloud)) for each in started]
for end in ends:
    wait_for_operation(cloud, end.operation.id)
end = unwrap(delete_network.sync_detailed(made.network.id, client=cloud))
wait_for_operation(cloud, end.operation.id)
delete_ssh_key.sync_detailed(key.id, client=cloud)
