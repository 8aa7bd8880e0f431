/** A node of a cluster that really runs pods: containerd, runc, kubelet, kube-proxy and what enforces network policies,
 *  joined to a control plane of the product by the token of a pool. */
import { createServer, connect, type Server } from 'node:net'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { imageArchive } from '../../agents/node/images/managed/node-programs.ts'
import {
  type ControlPlanes,
  type ControlPlaneState,
  DNS_SERVICE_NUMBER,
  NODE_API,
  serviceAddress,
} from '../../integrations/control-planes/control.ts'
import { NEWEST_RELEASE } from '../../integrations/control-planes/programs.ts'
import { COREDNS_IMAGE, PAUSE_IMAGE } from '../../domain/kubernetes-cluster/versions.ts'
import { buildTool } from '../../tools/cluster/build.ts'
import { until } from '../eventually.ts'
import { type Hosted, newDesired, openHosted, untilState } from '../hosting/processes/hosted.ts'
import { type Machine, startMachine } from './machine.ts'

const POOL = 'hosts'
const SOCKET = '/run/containerd/containerd.sock'
const PKI = '/var/lib/kubelet/pki'
export const CERTIFICATE = `${PKI}/kubelet-client-current.pem`

export interface PodCluster {
  readonly machine: Machine
  /** What its control plane runs on. */
  readonly hosted: Hosted
  readonly state: ControlPlaneState
  /** Of an administrator. */
  readonly kubeconfigFile: string
  /** Makes the images of an archive known to its containers. */
  importImage(file: string): Promise<void>
  /** Gives one that it knows another name besides. */
  tagImage(from: string, to: string): Promise<void>
  end(): Promise<void>
}

/** With one node, which is ready. */
export async function startPodCluster(folder: string): Promise<PodCluster> {
  const machine = await startMachine('host-1', join(folder, 'machine'))
  const ends: (() => Promise<unknown>)[] = [() => machine.end()]
  const end = async () => {
    for (const each of ends.toReversed()) await each()
  }
  try {
    const { hostAddress: address, podCidr, serviceCidr } = machine
    const hosted = await openHosted({ host: address, addresses: [address], nodes: { address } })
    ends.push(() => hosted.end())
    const desired = newDesired({ podCidrs: [podCidr], serviceCidrs: [serviceCidr] })
    await hosted.host.ensure(desired)
    const state = await untilState(
      hosted,
      desired.id,
      ({ phase, forNodes }) => phase === 'running' && forNodes !== null,
    )
    const relay = await relayTunnel(state)
    ends.push(async () => relay.close())
    await joinNode(machine, hosted, state)
    const { token } = await hosted.host.userToken(desired.id, 'admin', 3_600)
    const kubeconfigFile = join(folder, 'kubeconfig')
    await writeKubeconfig(kubeconfigFile, state, token)
    await enforcePolicies(machine, kubeconfigFile)
    return {
      machine,
      hosted,
      state,
      kubeconfigFile,
      end,
      importImage: (file) => importImage(machine, file),
      tagImage: async (from, to) => void (await ctr(machine, 'images', 'tag', from, to)),
    }
  } catch (error) {
    await end()
    throw error
  }
}

/** What enforces network policies. */
export const enforcePolicies = async (machine: Machine, kubeconfigFile: string): Promise<void> =>
  machine.start('policies', [
    await buildTool('kube-router'),
    `--kubeconfig=${kubeconfigFile}`,
    `--hostname-override=${machine.name}`,
    '--run-firewall=true',
    '--run-router=false',
    '--run-service-proxy=false',
    '--run-loadbalancer=false',
    `--service-cluster-ip-range=${machine.serviceCidr}`,
    '--health-port=0',
  ])

/** Makes the images of an archive known to containers of the machine. */
export const importImage = async (machine: Machine, file: string): Promise<void> =>
  void (await ctr(machine, 'images', 'import', file))

/** Of an administrator, as kubectl reads it. */
export async function writeKubeconfig(file: string, state: ControlPlaneState, token: string): Promise<void> {
  await writeFile(file, JSON.stringify(kubeconfigFor(state, { token })), { mode: 0o600 })
}

/** The tunnel listens on the loopback address of this machine only. */
export async function relayTunnel({ forNodes }: ControlPlaneState): Promise<Server> {
  if (forNodes === null) throw new Error('nodes cannot join')
  const { host, port } = forNodes.tunnel
  return relay(host, port, '127.0.0.1')
}

/** What comes to the port of an address of this machine goes to the same port there. */
export async function relay(host: string, port: number, to: string): Promise<Server> {
  const server = createServer((client) => {
    const inner = connect(port, to)
    for (const end of [client, inner]) end.once('error', () => void [client, inner].map((each) => each.destroy()))
    client.pipe(inner).pipe(client)
  })
  await new Promise<void>((resolve) => server.listen(port, host, resolve))
  server.unref()
  return server
}

const ctr = (machine: Machine, ...words: readonly string[]): Promise<string> =>
  machine.run('ctr', '--address', SOCKET, '--namespace', 'k8s.io', ...words)

/** What a node is configured as; in the field's words, as documents of nodes have it. */
export interface NodeTold {
  readonly state: ControlPlaneState
  readonly release: string
  readonly nodeName: string
  readonly nodeAddress: string
  readonly bootstrapToken: string
  /** Of all pods of the cluster. */
  readonly podCidr: string
  readonly dnsAddress: string
  readonly taints: readonly object[]
}

/** Starts what a node runs; it has its certificate once this resolves, and is ready when it is let serve and has its
 *  part of the range of pods. */
export async function startNode(machine: Machine, told: NodeTold): Promise<void> {
  if (told.nodeAddress !== machine.address) {
    await machine.lead(`${told.nodeAddress}/32`)
    await machine.run('ip', 'address', 'replace', `${told.nodeAddress}/32`, 'dev', 'eth0')
  }
  await machine.run('ip', 'address', 'replace', `${NODE_API.address}/32`, 'dev', 'lo')
  const programs = await layOut(machine, told)
  await machine.start('api', [
    'socat',
    `TCP4-LISTEN:${NODE_API.port},bind=${NODE_API.address},reuseaddr,fork,max-children=512`,
    `TCP4:${new URL(told.state.forNodes?.endpoint ?? '').host}`,
  ])
  await machine.start('containerd', programs.containerd)
  await until(
    'containerd',
    () => ctr(machine, 'version'),
    () => true,
  )
  for (const [name, program] of [
    [PAUSE_IMAGE, await buildTool('pause')],
    [COREDNS_IMAGE, await buildTool('coredns')],
  ] as const) {
    const file = join(machine.folder, `${name.split('/').at(-1)}.tar`)
    await writeFile(file, await imageArchive(name, program))
    await ctr(machine, 'images', 'import', file)
  }
  await machine.start('kubelet', programs.kubelet)
  await until(
    'the certificate of the kubelet',
    () => machine.run('cat', CERTIFICATE),
    () => true,
  )
  await machine.start('kube-proxy', programs.proxy)
  await machine.start('tunnel', programs.tunnel)
}

/** By the token, or by one that is made for that. */
export async function joinNode(
  machine: Machine,
  hosted: { readonly host: Pick<ControlPlanes, 'joinToken' | 'servingRequests' | 'approveServing' | 'nodes'> },
  state: ControlPlaneState,
  token?: string,
): Promise<void> {
  const { id } = state
  const { name: nodeName, address: nodeAddress, podCidr, serviceCidr } = machine
  const bootstrapToken = token ?? (await hosted.host.joinToken(id, 'abcdef', POOL, 3_600)).token
  const dnsAddress = serviceAddress(serviceCidr, DNS_SERVICE_NUMBER) ?? ''
  const release = NEWEST_RELEASE
  await startNode(machine, {
    state,
    release,
    nodeName,
    nodeAddress,
    bootstrapToken,
    podCidr,
    dnsAddress,
    taints: [],
  })
  await until(
    'the node to be ready',
    async () => {
      // It serves what the API server asks of it by a certificate that somebody has to approve.
      for (const { name } of await hosted.host.servingRequests(id)) await hosted.host.approveServing(id, name)
      const [node] = await hosted.host.nodes(id)
      await machine.run('ls', `${PKI}/kubelet-server-current.pem`)
      return node?.isReady === true ? 'it is' : machine.log('kubelet')
    },
    (is) => is === 'it is',
  )
}

/** Files of its programs, and how they are called. */
async function layOut(machine: Machine, told: NodeTold) {
  const { state, nodeName, nodeAddress, bootstrapToken } = told
  const folder = join(machine.folder, 'etc')
  await mkdir(join(folder, 'cni'), { recursive: true })
  const write = async (name: string, content: unknown) => {
    const file = join(folder, name)
    await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content), { mode: 0o600 })
    return file
  }
  const authority = await write('ca.crt', state.certificateAuthority)
  const pair = { 'client-certificate': CERTIFICATE, 'client-key': CERTIFICATE }
  const own = await write('kubelet.kubeconfig', kubeconfigFor(state, pair))
  const joining = await write('join.kubeconfig', kubeconfigFor(state, { token: bootstrapToken }))
  await write('pods.conflist', POD_NETWORK)
  const resolver = await write('resolv.conf', `nameserver ${machine.hostAddress}\n`)
  const kubelet = await write('kubelet.json', kubeletConfiguration(machine, told, { authority, resolver }))
  const proxy = await write('kube-proxy.json', proxyConfiguration(told, own))
  const containerd = await write('containerd.toml', containerdConfiguration(folder))
  const { host, port } = state.forNodes?.tunnel ?? { host: '', port: 0 }
  const built = (name: 'kubelet' | 'kube-proxy') => buildTool(told.release === NEWEST_RELEASE ? name : `${name}-1.35`)
  return {
    containerd: ['containerd', '--config', containerd],
    kubelet: [
      await built('kubelet'),
      `--config=${kubelet}`,
      `--kubeconfig=${own}`,
      `--cert-dir=${PKI}`,
      `--bootstrap-kubeconfig=${joining}`,
      `--hostname-override=${nodeName}`,
      `--node-ip=${nodeAddress}`,
    ],
    proxy: [await built('kube-proxy'), `--config=${proxy}`],
    tunnel: [
      await buildTool('konnectivity-agent'),
      `--ca-cert=${authority}`,
      `--agent-cert=${CERTIFICATE}`,
      `--agent-key=${CERTIFICATE}`,
      `--proxy-server-host=${host}`,
      `--proxy-server-port=${port}`,
      `--agent-identifiers=ipv4=${nodeAddress}`,
      '--sync-interval=1s',
      '--admin-bind-address=127.0.0.1',
      '--health-server-host=127.0.0.1',
    ],
  }
}

/** What somebody gets in by, from a node or from this machine. */
export function kubeconfigFor({ forNodes, certificateAuthority }: ControlPlaneState, user: object) {
  const authority = Buffer.from(certificateAuthority ?? '').toString('base64')
  return {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'own',
    clusters: [{ name: 'own', cluster: { server: forNodes?.endpoint, 'certificate-authority-data': authority } }],
    users: [{ name: 'own', user }],
    contexts: [{ name: 'own', context: { cluster: 'own', user: 'own' } }],
  }
}

const kubeletConfiguration = (
  { cgroup }: Machine,
  { nodeAddress: address, dnsAddress, taints }: NodeTold,
  { authority: clientCAFile, resolver: resolvConf }: Readonly<Record<'authority' | 'resolver', string>>,
) => ({
  apiVersion: 'kubelet.config.k8s.io/v1beta1',
  kind: 'KubeletConfiguration',
  address,
  port: 10_250,
  readOnlyPort: 0,
  authentication: { anonymous: { enabled: false }, webhook: { enabled: true }, x509: { clientCAFile } },
  authorization: { mode: 'Webhook' },
  cgroupDriver: 'cgroupfs',
  cgroupRoot: `/${cgroup}`,
  failCgroupV1: false,
  containerRuntimeEndpoint: `unix://${SOCKET}`,
  clusterDNS: [dnsAddress],
  clusterDomain: 'cluster.local',
  resolvConf,
  rotateCertificates: true,
  serverTLSBootstrap: true,
  failSwapOn: false,
  registerWithTaints: taints,
  // The disk is that of this machine, and no registry has the images.
  imageGCHighThresholdPercent: 100,
  evictionHard: {},
})

const proxyConfiguration = ({ nodeName, podCidr }: NodeTold, kubeconfigFile: string) => ({
  apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
  kind: 'KubeProxyConfiguration',
  mode: 'nftables',
  clusterCIDR: podCidr,
  hostnameOverride: nodeName,
  clientConnection: { kubeconfig: kubeconfigFile },
  metricsBindAddress: '127.0.0.1:10249',
  healthzBindAddress: '127.0.0.1:10256',
  conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
})

/** containerd fills in the node's part of the range of pods, once the cluster has given it one. */
const POD_NETWORK = JSON.stringify({
  cniVersion: '1.0.0',
  name: 'pods',
  plugins: [
    {
      type: 'bridge',
      bridge: 'cni0',
      isGateway: true,
      hairpinMode: true,
      ipam: { type: 'host-local', ranges: [[{ subnet: '{{.PodCIDR}}' }]], routes: [{ dst: '0.0.0.0/0' }] },
    },
    { type: 'portmap', capabilities: { portMappings: true } },
  ],
})

const CRI = 'plugins."io.containerd.grpc.v1.cri"'
const containerdConfiguration = (folder: string): string => `version = 2
[${CRI}]
  sandbox_image = "${PAUSE_IMAGE}"
  restrict_oom_score_adj = true
  [${CRI}.cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "${folder}/cni"
    conf_template = "${folder}/pods.conflist"
  [${CRI}.containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
  [${CRI}.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
`
