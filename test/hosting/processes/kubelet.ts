/** What a kubelet does to come into a cluster and stay there, without running anything: it joins by a token, makes its
 *  Node, asks for the certificate that it serves with, reports, and answers API servers by the tunnel. */
import 'reflect-metadata'
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID, webcrypto } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:https'
import { isIP, type AddressInfo } from 'node:net'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import * as x509 from '@peculiar/x509'
import { probePort } from '../../../embedded/kit/ports.ts'
import type { ControlPlaneState } from '../../../integrations/control-planes/control.ts'
import type { Certificate } from '../../../kit/sys/certificate.ts'
import { isBuilt, toolPath } from '../../../tools/cluster/build.ts'
import { until } from '../../eventually.ts'
import { type KubeClient, kubeClient } from './hosted.ts'

/** API servers refuse to ask nodes at addresses of the loopback. */
const own = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .find(({ internal, family }) => !internal && family === 'IPv4')?.address
/** Of nodes that are played here. */
export const ADDRESS = own ?? '127.0.7.1'
/** Whether API servers can ask them anything. */
export const canBeReached = own !== undefined && (await isBuilt('konnectivity-agent'))

const CSRS = '/apis/certificates.k8s.io/v1/certificatesigningrequests'
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
/** What the signer of each may put into a certificate. */
const SIGNERS = {
  client: { signerName: 'kubernetes.io/kube-apiserver-client-kubelet', usages: ['digital signature', 'client auth'] },
  serving: { signerName: 'kubernetes.io/kubelet-serving', usages: ['digital signature', 'server auth'] },
} as const

export interface KubeletOptions {
  readonly state: ControlPlaneState
  readonly name: string
  readonly address: string
  readonly token: string
  readonly version?: string
}

export interface Kubelet {
  readonly name: string
  /** As the node itself. */
  readonly client: KubeClient
  /** Asks for the certificate that it serves with; answers the name of the request. */
  askToServe(hosts?: readonly string[]): Promise<string>
  /** Serves API servers once that is signed. */
  serve(request: string): Promise<void>
  report(isReady: boolean): Promise<void>
  /** The tunnel of the node. */
  startTunnel(): Promise<void>
  stopTunnel(): Promise<void>
  /** The node vanished, and nobody reports it: its tunnel stays open. The next start is of another one. */
  freezeTunnel(): void
  end(): Promise<void>
}

interface Asked {
  readonly request: string
  readonly key: string
}

/** Sends a request for a certificate; the API says whether it may. */
export async function askFor(
  client: KubeClient,
  kind: keyof typeof SIGNERS,
  { name, hosts = [] }: { readonly name: string; readonly hosts?: readonly string[] },
): Promise<Asked> {
  x509.cryptoProvider.set(webcrypto)
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
  const names = hosts.map((host) => ({ type: isIP(host) === 0 ? 'dns' : 'ip', value: host }) as const)
  const made = await x509.Pkcs10CertificateRequestGenerator.create({
    name: `O=system:nodes, CN=system:node:${name}`,
    keys,
    signingAlgorithm: ALGORITHM,
    extensions: names.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(names)],
  })
  const request = `csr-${randomUUID()}`
  const { status, body } = await client.send('POST', CSRS, {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: request },
    spec: { request: Buffer.from(made.toString('pem')).toString('base64'), ...SIGNERS[kind] },
  })
  if (status !== 201) throw new Error(`${request}: ${status} ${JSON.stringify(body)}`)
  return {
    request,
    key: x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY'),
  }
}

async function signed(client: KubeClient, { request, key }: Asked): Promise<Certificate> {
  const { body } = await until(
    `${request} to be signed`,
    () => client.send('GET', `${CSRS}/${request}`),
    (reply) => JSON.stringify(reply.body['status'] ?? {}).includes('"certificate"'),
  )
  const { certificate } = body['status'] as { certificate: string } // has been looked for
  return { certificate: Buffer.from(certificate, 'base64').toString(), key }
}

/** Joins with the token of its pool, which Kubernetes approves by itself, and makes its Node. */
export async function joinAsKubelet(options: KubeletOptions): Promise<Kubelet> {
  const { state, name, address, token, version = 'v1.36.3' } = options
  const joiner = kubeClient(state, token)
  const identity = await signed(joiner, await askFor(joiner, 'client', { name }))
  const client = kubeClient(state, identity)
  const path = `/api/v1/nodes/${name}`
  const asked = new Map<string, Asked>()
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-kubelet-'))
  let server: Server | undefined
  const frozen: ChildProcess[] = []
  let agent: ChildProcess | undefined
  const made = await client.send('POST', '/api/v1/nodes', {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { 'kubernetes.io/hostname': name } },
  })
  if (made.status !== 201) throw new Error(`${name}: ${made.status} ${JSON.stringify(made.body)}`)
  const patchStatus = (status: object) =>
    client.send('PATCH', `${path}/status`, { status }, 'application/strategic-merge-patch+json')
  const stopTunnel = async () => {
    const running = agent
    agent = undefined
    if (running === undefined) return
    const ended = new Promise((resolve) => running.once('exit', resolve))
    running.kill('SIGKILL')
    await ended
  }
  return {
    name,
    client,
    async askToServe(hosts = [name, address]) {
      const one = await askFor(client, 'serving', { name, hosts })
      asked.set(one.request, one)
      return one.request
    },
    async serve(request) {
      const own = asked.get(request)
      if (own === undefined) throw new Error(`${request} is not its own`)
      const { certificate: cert, key } = await signed(client, own)
      const { certificateAuthority } = state
      server = createServer(
        { cert, key, ca: certificateAuthority ?? '', requestCert: true, rejectUnauthorized: true },
        (_request, response) => response.end(`${name} says hello`),
      )
      await new Promise<void>((resolve) => server?.listen(0, address, resolve))
      const { port: Port } = server.address() as AddressInfo // it listens on a port
      await patchStatus({ daemonEndpoints: { kubeletEndpoint: { Port } } })
    },
    async report(isReady) {
      const at = new Date().toISOString()
      const conditions = [
        {
          type: 'Ready',
          status: isReady ? 'True' : 'False',
          reason: 'Test',
          message: '',
          lastHeartbeatTime: at,
          lastTransitionTime: at,
        },
      ]
      const nodeInfo = { kubeletVersion: version, ...NODE_INFO }
      await patchStatus({ conditions, nodeInfo, addresses: [{ type: 'InternalIP', address }] })
    },
    async startTunnel() {
      const { forNodes, certificateAuthority } = state
      if (forNodes === null) throw new Error('there is no tunnel')
      const file = async (of: string, text: string) => {
        await writeFile(join(folder, of), text, { mode: 0o600 })
        return join(folder, of)
      }
      const [ca, cert, key] = [
        await file('ca.crt', certificateAuthority ?? ''),
        await file('agent.crt', identity.certificate),
        await file('agent.key', identity.key),
      ]
      const [admin, health] = [await probePort('127.0.0.1', 0), await probePort('127.0.0.1', 0)]
      agent = spawn(
        toolPath('konnectivity-agent'),
        [
          `--ca-cert=${ca}`,
          `--agent-cert=${cert}`,
          `--agent-key=${key}`,
          '--sync-interval=1s',
          `--proxy-server-host=${forNodes.tunnel.host}`,
          `--proxy-server-port=${forNodes.tunnel.port}`,
          `--agent-identifiers=ipv4=${address}`,
          '--admin-bind-address=127.0.0.1',
          `--admin-server-port=${admin}`,
          '--health-server-host=127.0.0.1',
          `--health-server-port=${health}`,
        ],
        { stdio: 'ignore' },
      )
    },
    stopTunnel,
    freezeTunnel() {
      if (agent === undefined) throw new Error('there is no tunnel')
      agent.kill('SIGSTOP')
      frozen.push(agent)
      agent = undefined
    },
    async end() {
      await stopTunnel()
      for (const one of frozen) one.kill('SIGKILL')
      server?.closeAllConnections()
      server?.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

const NODE_INFO = {
  machineID: '',
  systemUUID: '',
  bootID: '',
  kernelVersion: '',
  osImage: '',
  containerRuntimeVersion: '',
  kubeProxyVersion: '',
  operatingSystem: 'linux',
  architecture: 'amd64',
}
