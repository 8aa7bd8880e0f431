/** Settings of the processes that exist only in an embedded cloud. `npm start` passes them as JSON. */
import { z } from 'zod'
import { Flag, HttpUrl, List, logLevel, Port } from '../../kit/sys/settings.ts'

const data = z.string().min(1).describe('Folder for its data. No other process uses it.')
const host = z.string().min(1).describe('Address that clients connect to.')
const controlPort = Port.describe('Port on the loopback on which the platform manages it.')
const NodesListener = z.strictObject({
  address: z.string().min(1),
  firstPort: z.int().min(1).max(65_535),
  ports: z.int().min(1),
  /** Socket of the host of control planes, which may not exist yet. */
  socket: z.string().min(1),
})
export type NodesListener = z.output<typeof NodesListener>
const nodesListener = NodesListener.optional().describe(
  'Where nodes of clusters reach their control planes: what comes to these ports of the address arrives at the ' +
    'socket. Without it, no node joins.',
)

export const PostgresSettings = z.strictObject({
  data,
  port: Port.default(0).describe('Port that it listens on; 0 takes that of the last start.'),
  logLevel,
})

export const KubernetesSettings = z.strictObject({
  data,
  host: host.default('127.0.0.1').describe('Address that the Kubernetes API listens on.'),
  port: Port.default(0).describe('Port of the Kubernetes API; 0 takes a free one.'),
  webhookTokenFile: z
    .string()
    .min(1)
    .optional()
    .describe('File with the bearer token that it presents to webhooks on this machine.'),
  logLevel,
})

export const ObjectStorageSettings = z.strictObject({
  data,
  engine: z.string().min(1).describe('Path of the program that stores objects.'),
  host,
  port: Port.describe('Port of S3 clients; 0 takes a free one.'),
  controlPort,
  hosts: List.describe('Names and addresses that its certificate is valid for.'),
  portalOrigin: z.string().min(1).optional().describe('Origin of the portal, whose pages upload objects.'),
  cgroup: z.string().min(1).optional().describe('Delegated control group, below which engines get their bounds.'),
  logLevel,
})
/** Settings of the process that serves clients of object storage. */
export const ObjectInterfaceSettings = z.strictObject({ logLevel })

export const ControlPlanesSettings = z.strictObject({
  data,
  host: host.describe('Address that the endpoints of clusters listen on.'),
  controlPort,
  memoryMebibytes: z.coerce.number<number | string>().int().min(1).describe('Memory of all control planes together.'),
  nodesListener,
  apiUrl: HttpUrl.optional().describe('URL of the platform, for add-ons of clusters. Without it, there are none.'),
  imageCache: z.string().min(1).optional().describe('Folder with images of guests.'),
  playgroundsDomain: z.string().min(1).optional().describe('Domain below which apps of playgrounds are served.'),
  playgroundsPort: Port.optional().describe('Port on which they are served. Without both, there are no playgrounds.'),
  playgroundsAccelerator: z
    .enum(['kvm', 'tcg'])
    .default('tcg')
    .describe('What runs guests of playgrounds; `kvm` only where every user may use it.'),
  logLevel,
})

export const FakePaymentsSettings = z.strictObject({
  data,
  port: Port.default(0).describe('Port that it listens on; 0 takes a free one.'),
  webhookUrl: HttpUrl.describe('URL that payment events are sent to.'),
  stripeKeyFile: z.string().min(1).describe('File with the secret key of its API.'),
  stripeWebhookSecretFile: z.string().min(1).describe('File with the secret that it signs events with.'),
  logLevel,
})

const Numbers = z.record(z.string(), z.int().min(0))

export const NetworkSettings = z.strictObject({
  data,
  sharedFolders: z.array(z.string()).describe('Folders with the schemas of Open vSwitch and OVN.'),
  guests: z.string().min(1).describe('Folder with the folders of the nodes.'),
  nodes: Numbers.describe('Nodes, each with its number.'),
  zones: Numbers.describe('Zones, each with its number.'),
  proxyPort: Port.min(1).describe('Port on the loopback of the SOCKS5 proxy to the servers.'),
  loopbackPorts: z.array(Port.min(1)).describe('Ports of servers that addresses of the loopback forward to.'),
  publicRoute: Flag.default(false).describe('Give this machine a route to the public addresses of servers.'),
  nodesListener,
  objectStorage: z
    .strictObject({ host, port: Port.min(1) })
    .optional()
    .describe(
      'IPv4 address and port of this machine at which servers reach object storage; 0.0.0.0 means all its addresses. ' +
        'Without it, they reach nothing of this machine.',
    ),
  logLevel,
})

/** Settings of the process in the cloud's network namespace that connects to servers. */
export const ForwarderSettings = z.strictObject({
  networks: z.array(z.string()).describe('Networks that it connects to.'),
  nodesListener,
  logLevel,
})
