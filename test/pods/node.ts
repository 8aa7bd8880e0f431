/** A node of a cluster that really runs pods: containerd, runc, kubelet, kube-proxy and what enforces network policies,
 *  joined to a control plane of the product by the token of a pool. */
import { createServer, connect, type Server } from 'node:net'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { imageArchive } from '../../agents/node/images/managed/node-programs.ts'
import {
  type ControlPlaneState,
  DNS_SERVICE_NUMBER,
  NODE_API,
  serviceAddress,
} from '../../kit/control-planes/control.ts'
import { COREDNS_IMAGE, PAUSE_IMAGE } from '../../kit/control-planes/versions.ts'
import { buildTool } from '../../tools/cluster/build.ts'
import { until } from '../eventually.ts'
import { type Hosted, newDesired, openHosted, untilState } from '../embedded/control-planes/hosted.ts'
import { type Machine, startMachine } from './machine.ts'

const READY_MILLISECONDS = 90_000
const POOL = 'hosts'
const SOCKET = '/run/containerd/containerd.sock'
const PKI = '/var/lib/kubelet/pki'
const CERTIFICATE = `${PKI}/kubelet-client-current.pem`

export interface PodCluster {
  readonly machine: Machine
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
      ...{ machine, state, kubeconfigFile, end },
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
    ...[await buildTool('kube-router'), `--kubeconfig=${kubeconfigFile}`, `--hostname-override=${machine.name}`],
    ...['--run-firewall=true', '--run-router=false', '--run-service-proxy=false', '--run-loadbalancer=false'],
    ...[`--service-cluster-ip-range=${machine.serviceCidr}`, '--health-port=0'],
  ])

/** Makes the images of an archive known to containers of the machine. */
export const importImage = async (machine: Machine, file: string): Promise<void> =>
  void (await ctr(machine, 'images', 'import', file))

/** Of an administrator, as kubectl reads it. */
export async function writeKubeconfig(file: string, state: ControlPlaneState, token: string): Promise<void> {
  await writeFile(file, JSON.stringify(kubeconfig(state, { token })), { mode: 0o600 })
}

/** The tunnel listens on the loopback address of this machine only. */
export async function relayTunnel({ forNodes }: ControlPlaneState): Promise<Server> {
  if (forNodes === null) throw new Error('nodes cannot join')
  const { host, port } = forNodes.tunnel
  const server = createServer((client) => {
    const inner = connect(port, '127.0.0.1')
    for (const end of [client, inner]) end.once('error', () => void [client, inner].map((each) => each.destroy()))
    client.pipe(inner).pipe(client)
  })
  await new Promise<void>((resolve) => server.listen(port, host, resolve))
  server.unref()
  return server
}

const ctr = (machine: Machine, ...words: readonly string[]): Promise<string> =>
  machine.run('ctr', '--address', SOCKET, '--namespace', 'k8s.io', ...words)

/** By the token, or by one that is made for that. */
export async function joinNode(
  machine: Machine,
  hosted: Pick<Hosted, 'host'>,
  state: ControlPlaneState,
  token?: string,
): Promise<void> {
  const { id } = state
  const own = token ?? (await hosted.host.joinToken(id, 'abcdef', POOL, 3_600)).token
  const programs = await layOut(machine, state, own)
  await machine.run('ip', 'address', 'replace', `${NODE_API.address}/32`, 'dev', 'lo')
  await machine.start('api', [
    'socat',
    `TCP4-LISTEN:${NODE_API.port},bind=${NODE_API.address},reuseaddr,fork,max-children=512`,
    `TCP4:${new URL(state.forNodes?.endpoint ?? '').host}`,
  ])
  await machine.start('containerd', programs.containerd)
  await until(
    'containerd',
    () => ctr(machine, 'version'),
    () => true,
    READY_MILLISECONDS,
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
    READY_MILLISECONDS,
  )
  await machine.start('kube-proxy', programs.proxy)
  await machine.start('tunnel', programs.tunnel)
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
    READY_MILLISECONDS,
  )
}

/** Files of its programs, and how they are called. */
async function layOut(machine: Machine, state: ControlPlaneState, token: string) {
  const folder = join(machine.folder, 'etc')
  await mkdir(join(folder, 'cni'), { recursive: true })
  const write = async (name: string, content: unknown) => {
    const file = join(folder, name)
    await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content), { mode: 0o600 })
    return file
  }
  const authority = await write('ca.crt', state.certificateAuthority)
  const own = await write(
    'kubelet.kubeconfig',
    kubeconfig(state, { 'client-certificate': CERTIFICATE, 'client-key': CERTIFICATE }),
  )
  const joining = await write('join.kubeconfig', kubeconfig(state, { token }))
  await write('cni/pods.conflist', podNetwork(machine))
  const resolver = await write('resolv.conf', `nameserver ${machine.hostAddress}\n`)
  const kubelet = await write('kubelet.json', kubeletConfiguration(machine, authority, resolver))
  const proxy = await write('kube-proxy.json', proxyConfiguration(machine, own))
  const containerd = await write('containerd.toml', containerdConfiguration(folder))
  const { host, port } = state.forNodes?.tunnel ?? { host: '', port: 0 }
  return {
    containerd: ['containerd', '--config', containerd],
    kubelet: [
      ...[await buildTool('kubelet'), `--config=${kubelet}`, `--kubeconfig=${own}`, `--cert-dir=${PKI}`],
      ...[`--bootstrap-kubeconfig=${joining}`, `--hostname-override=${machine.name}`, `--node-ip=${machine.address}`],
    ],
    proxy: [await buildTool('kube-proxy'), `--config=${proxy}`],
    tunnel: [
      ...[await buildTool('konnectivity-agent'), `--ca-cert=${authority}`, `--agent-cert=${CERTIFICATE}`],
      ...[`--agent-key=${CERTIFICATE}`, `--proxy-server-host=${host}`, `--proxy-server-port=${port}`],
      ...[`--agent-identifiers=ipv4=${machine.address}`, '--sync-interval=1s', '--admin-bind-address=127.0.0.1'],
      '--health-server-host=127.0.0.1',
    ],
  }
}

function kubeconfig({ forNodes, certificateAuthority }: ControlPlaneState, user: object) {
  const authority = Buffer.from(certificateAuthority ?? '').toString('base64')
  return {
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'own' },
    clusters: [{ name: 'own', cluster: { server: forNodes?.endpoint, 'certificate-authority-data': authority } }],
    users: [{ name: 'own', user }],
    contexts: [{ name: 'own', context: { cluster: 'own', user: 'own' } }],
  }
}

const kubeletConfiguration = ({ address, cgroup, serviceCidr }: Machine, clientCAFile: string, resolvConf: string) => ({
  apiVersion: 'kubelet.config.k8s.io/v1beta1',
  kind: 'KubeletConfiguration',
  ...{ address, port: 10_250, readOnlyPort: 0 },
  authentication: { anonymous: { enabled: false }, webhook: { enabled: true }, x509: { clientCAFile } },
  authorization: { mode: 'Webhook' },
  ...{ cgroupDriver: 'cgroupfs', cgroupRoot: `/${cgroup}`, failCgroupV1: false },
  containerRuntimeEndpoint: `unix://${SOCKET}`,
  clusterDNS: [serviceAddress(serviceCidr, DNS_SERVICE_NUMBER)],
  ...{ clusterDomain: 'cluster.local', resolvConf },
  ...{ rotateCertificates: true, serverTLSBootstrap: true, failSwapOn: false },
  // The disk is that of this machine, and no registry has the images.
  ...{ imageGCHighThresholdPercent: 100, evictionHard: {} },
})

const proxyConfiguration = ({ name, podCidr }: Machine, kubeconfigFile: string) => ({
  apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
  kind: 'KubeProxyConfiguration',
  ...{ mode: 'nftables', clusterCIDR: podCidr, hostnameOverride: name },
  clientConnection: { kubeconfig: kubeconfigFile },
  ...{ metricsBindAddress: '127.0.0.1:10249', healthzBindAddress: '127.0.0.1:10256' },
  conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
})

const podNetwork = ({ podCidr }: Machine) => ({
  ...{ cniVersion: '1.0.0', name: 'pods' },
  plugins: [
    {
      ...{ type: 'bridge', bridge: 'cni0', isGateway: true, hairpinMode: true },
      ipam: { type: 'host-local', ranges: [[{ subnet: podCidr }]], routes: [{ dst: '0.0.0.0/0' }] },
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
  [${CRI}.containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
  [${CRI}.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
`
