/** The agent's own process with real guests, against the embedded Kubernetes API over HTTPS. */
import { type ChildProcess, execFile, fork } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { TLSSocket } from 'node:tls'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type EmbeddedServer, startKubernetesApi } from '../../../embedded/kubernetes/server/serve.ts'
import type { ServedConsole } from '../../../agents/node/serve/console.ts'
import { openClient } from '../../../kit/kube/client.ts'
import { installCrds } from '../../../kit/kube/crd.ts'
import { crds } from '../../../controllers/kit/crds.ts'
import { type HttpsTransport, openHttpsTransport } from '../../../kit/kube/https-transport.ts'
import { readKubeconfig } from '../../../kit/kube/kubeconfig.ts'
import { Namespace, Secret } from '../../../kit/kube/object.ts'
import type { Draft, Store } from '../../../kit/kube/store.ts'
import { systemClock as clock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { environment, nodeBinary, signalProcess } from '../../../kit/sys/process.ts'
import { systemRandom as random } from '../../../kit/sys/random.ts'
import {
  AGENT_ACCESS_SECRET_NAME,
  AGENT_FINALIZER,
  type GuestUsage,
  Instance,
  type InstanceStatus,
  NODE_REPORT_NAME,
  NodeReport,
  nodeNamespace,
  USAGE_FIELDS,
  USAGE_FIELDS_HEADER,
  Volume,
} from '../../../resources/instance/index.ts'
import { eventually, until } from '../../eventually.ts'
import { instanceSpec } from './instance-spec.ts'
import { IMAGE_FOLDER, tinyLinux } from './real-host.ts'
import { releaseRemoved } from './release.ts'

const run = promisify(execFile)
const NODE = 'alpha'
const namespace = nodeNamespace(NODE)
const NAME = '1d0b8f1e-2a61-4f0e-9a3f-0b7c6f0d4e21'
const TOKEN = 'a-token-of-this-test'
const key = { namespace, name: NAME }

let folder: string
let server: EmbeddedServer
let https: HttpsTransport
let store: Store
let agent: ChildProcess | undefined

beforeAll(async () => {
  await tinyLinux()
  folder = await mkdtemp(join(tmpdir(), 'svccloud-agent-'))
  server = await startKubernetesApi({
    folder: join(folder, 'kubernetes'),
    host: '127.0.0.1',
    port: 0,
    clock,
    random,
    log: silentLog,
  })
  https = openHttpsTransport(await readKubeconfig(server.kubeconfig, clock))
  store = openClient({ transport: https.transport, fieldManager: 'tests', clock, random })
  await installCrds(store, crds(), clock)
  await store.create(Namespace, { metadata: { name: namespace }, spec: {} })
  const secret = (name: string, data: Record<string, string>) =>
    store.create(Secret, {
      metadata: { namespace, name },
      data: Object.fromEntries(
        Object.entries(data).map(([field, text]) => [field, Buffer.from(text).toString('base64')]),
      ),
    } as unknown as Draft<unknown, unknown>) // a Secret has data, no spec
  await secret(AGENT_ACCESS_SECRET_NAME, { token: TOKEN })
  await secret('user-data', { userData: '#!/bin/sh\necho "user data ran on $(hostname)"\n' })
})

afterAll(async () => {
  await stopAgent('SIGKILL')
  for (const guest of await readdir(join(folder, 'agent', 'guests')).catch(() => [])) {
    const pid = Number(await readFile(join(folder, 'agent', 'guests', guest, 'qemu.pid'), 'utf8').catch(() => '0'))
    if (pid > 0) signalProcess(pid, 'SIGKILL')
  }
  await https.close()
  await server.stop()
  await rm(folder, { recursive: true, force: true })
})

async function startAgent(): Promise<void> {
  const child = fork(join(import.meta.dirname, '../../../agents/node/main.ts'), [], {
    execPath: nodeBinary(),
    execArgv: [],
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    env: {
      PATH: environment()['PATH'],
      SVCCLOUD_NODE_NAME: NODE,
      SVCCLOUD_KUBECONFIG: server.kubeconfig,
      SVCCLOUD_DATA: join(folder, 'agent'),
      SVCCLOUD_HYPERVISOR: 'qemu',
      SVCCLOUD_IMAGE_CACHE: IMAGE_FOLDER,
    },
  })
  agent = child
  await new Promise<void>((resolve, reject) => {
    child.once('message', () => resolve())
    child.once('exit', (code) => reject(new Error(`the agent ended with ${code}`)))
  })
}

async function stopAgent(signal: NodeJS.Signals): Promise<void> {
  const child = agent
  agent = undefined
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill(signal)
  await ended
}

const statusWhen = (what: string, isWanted: (status: InstanceStatus) => boolean): Promise<InstanceStatus> =>
  until(
    what,
    async () => {
      const status = (await store.get(Instance, key))?.status
      if (status === undefined) throw new Error('nothing is reported')
      return status
    },
    isWanted,
  )
const guestPid = async () => Number(await readFile(join(folder, 'agent', 'guests', NAME, 'qemu.pid'), 'utf8'))

/** A request to the agent as the API server makes it: the certificate is compared with the reported fingerprint. */
async function ask(
  method: string,
  token = TOKEN,
  body?: string,
  path = `/v1/instances/${NAME}/console`,
): Promise<{ status: number; response: IncomingMessage }> {
  const report = await store.get(NodeReport, { namespace, name: NODE_REPORT_NAME })
  const endpoint = report?.spec.endpoint
  if (endpoint === undefined) throw new Error('the node reports no endpoint')
  return new Promise((resolve, reject) => {
    const call = request(
      `${endpoint.url}${path}`,
      {
        method,
        agent: false,
        rejectUnauthorized: false,
        headers: { authorization: `Bearer ${token}`, [USAGE_FIELDS_HEADER]: USAGE_FIELDS },
      },
      (response) => resolve({ status: response.statusCode ?? 0, response }),
    )
    call.once('error', reject)
    call.once('socket', (socket) =>
      socket.once('secureConnect', () => {
        const certificate = (socket as TLSSocket).getPeerX509Certificate()
        expect(
          createHash('sha256')
            .update(certificate?.raw ?? '')
            .digest('hex'),
        ).toBe(endpoint.certificateFingerprint)
      }),
    )
    call.end(body)
  })
}

async function usage(): Promise<GuestUsage | undefined> {
  const { response } = await ask('GET', TOKEN, undefined, '/v1/usage')
  let text = ''
  for await (const chunk of response) text += String(chunk)
  return (JSON.parse(text) as { readonly guests: readonly GuestUsage[] }).guests.find(
    ({ instance }) => instance === NAME,
  ) // the agent's answer
}

/** What the console says, line by line, until the stream ends or breaks. */
async function listen({ response }: { response: IncomingMessage }, hear: (line: ServedConsole) => void): Promise<void> {
  try {
    for await (const text of createInterface({ input: response })) hear(JSON.parse(text) as ServedConsole)
  } catch {
    // the agent has stopped
  }
}
const bytesOf = (line: ServedConsole): string =>
  line.type === 'tail' || line.type === 'output' ? Buffer.from(line.data, 'base64').toString() : ''

it('runs a guest through its life, across the death of its agent', async () => {
  const identity = join(folder, 'id')
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', identity])
  const publicKey = (await readFile(`${identity}.pub`, 'utf8')).trim()
  await startAgent()
  await store.create(Volume, {
    metadata: { namespace, name: 'boot', finalizers: [AGENT_FINALIZER] },
    spec: {
      storage: { namespace: 'acct-1', name: 's', uid: 's' },
      sizeGibibytes: 1,
      source: { kind: 'template', name: 'tiny-linux' },
    },
  })
  const ipv4 = { address: '203.0.113.2', prefix: 24, gateway: '203.0.113.1' }
  const addressed = (prefix: string) => [
    {
      macAddress: '52:54:00:12:34:56',
      kind: 'public' as const,
      ipv4,
      ipv6: { address: `${prefix}1`, prefix: 64, gateway: 'fe80::1' },
      routedPrefixes: [`${prefix}/64`],
    },
  ]
  const spec = instanceSpec({ interfaces: addressed('2001:db8:0:1::') })
  await store.create(Instance, {
    metadata: { ...key, finalizers: [AGENT_FINALIZER] },
    spec: { ...spec, metadata: { ...spec.metadata, publicKeys: [publicKey], userDataSecretName: 'user-data' } },
  })
  const { forwards = [] } = await statusWhen('the guest to run', ({ state }) => state === 'running')

  // The console: tail, status, output; what is typed is answered.
  expect((await ask('GET', 'another-token')).status).toBe(401)
  const stream = await ask('GET')
  const seen: ServedConsole[] = []
  let printed = ''
  const reading = listen(stream, (line) => {
    seen.push(line)
    printed += bytesOf(line)
  })
  await eventually('the prompt', () => printed.includes('root@web-1:~#') || undefined)
  await eventually('the user data', () => printed.includes('user data ran on web-1') || undefined)
  expect(seen[0]?.type).toBe('tail')
  expect(seen[1]).toEqual({ type: 'status', connected: true, running: true, incarnation: 1 })
  expect((await ask('POST', TOKEN, 'echo kept > /data/note; sync; hostname\n')).status).toBe(204)
  await eventually('the answer', () => /\nweb-1\r?\n/.test(printed) || undefined)
  expect((await ask('POST', TOKEN, 'x'.repeat(4097))).status).toBe(413)

  // SSH by the key of the metadata, through the reported forward, to the host keys that the guest has printed.
  const forward = forwards.find(({ guestPort }) => guestPort === 22)
  const { sshHostKeys = [] } = await statusWhen('the host keys', (status) => status.sshHostKeys !== undefined)
  const known = join(folder, 'known-hosts')
  await writeFile(known, sshHostKeys.map((hostKey) => `web-1 ${hostKey}\n`).join(''))
  const ssh = (command: string) =>
    run('ssh', [
      '-i',
      identity,
      '-o',
      'BatchMode=yes',
      '-o',
      'StrictHostKeyChecking=yes',
      '-o',
      'HostKeyAlias=web-1',
      '-o',
      `UserKnownHostsFile=${known}`,
      '-p',
      String(forward?.hostPort),
      `root@${forward?.host}`,
      command,
    ])
  expect((await eventually('SSH', () => ssh('hostname').catch(() => undefined))).stdout).toBe('web-1\n')

  // It has the addresses that it was given, beside the one by which the host reaches it.
  const { stdout: held } = await ssh('ip address show dev eth0')
  for (const address of ['169.254.0.15/16', '203.0.113.2/24', '2001:db8:0:1::1/64'])
    expect(held).toContain(` ${address} `)

  // The metadata service: by token, and off within seconds. Its user data came from there already.
  const service = async (request: string, header = '') => {
    const { stdout } = await ssh(
      `printf '${request} HTTP/1.0\\r\\nHost: 169.254.169.254\\r\\n${header}\\r\\n' | nc 169.254.169.254 80`,
    )
    return { status: Number(stdout.split(' ')[1]), body: stdout.slice(stdout.indexOf('\r\n\r\n') + 4) }
  }
  const token = (await service('PUT /metadata/v1/token', 'X-Metadata-Token-TTL: 60\\r\\n')).body
  const metadata = () => service('GET /metadata/v1.json', `X-Metadata-Token: ${token}\\r\\n`)
  expect(JSON.parse((await metadata()).body)).toMatchObject({ hostname: 'web-1', public_keys: [publicKey] })
  expect((await service('GET /metadata/v1.json')).status).toBe(401)
  await store.patch(Instance, key, { spec: { metadata: { isEnabled: false } } })
  await eventually('the end of the service', async () => (await metadata()).status === 404 || undefined)
  await store.patch(Instance, key, { spec: { metadata: { isEnabled: true } } })
  await eventually('the service', async () => (await metadata()).status === 200 || undefined)
  await store.patch(Instance, key, { spec: { interfaces: addressed('2001:db8:0:2::') } })
  await eventually(
    'the other prefix',
    async () => JSON.parse((await metadata()).body).interfaces[0].ipv6.address === '2001:db8:0:2::1' || undefined,
  )

  // Its traffic is counted, and no restart of the agent forgets it.
  const moved = await eventually('traffic', async () => {
    const { counters } = (await usage()) ?? {}
    return counters !== undefined && counters.networkReceivedBytes > 0 ? counters : undefined
  })
  // Its driver reports how much memory it uses, and its host how much processor time.
  const load = await eventually('what it reports of its memory', async () => {
    const { load: read } = (await usage()) ?? {}
    return typeof read?.memoryUsedBytes === 'number' && typeof read.cpuMilliseconds === 'number'
      ? { memory: read.memoryUsedBytes, cpu: read.cpuMilliseconds }
      : undefined
  })
  expect(load.memory).toBeGreaterThan(1_000_000)
  expect(load.cpu).toBeGreaterThan(0)
  await ssh('head -c 1000000 /dev/zero')
  const more = (await usage())?.counters
  expect((more?.networkTransmittedBytes ?? 0) - moved.networkTransmittedBytes).toBeGreaterThan(1_000_000)

  // The agent dies; the guest does not notice, and is adopted.
  const pid = await guestPid()
  await stopAgent('SIGKILL')
  await reading
  expect(seen.at(-1)?.type).not.toBe('end')
  await startAgent()
  expect(await guestPid()).toBe(pid)
  expect(signalProcess(pid, 0)).toBe(true)
  const after = await eventually('traffic', async () => (await usage())?.counters)
  expect(after.networkTransmittedBytes).toBeGreaterThanOrEqual(more?.networkTransmittedBytes ?? 0)
  let tail = ''
  const again = await ask('GET')
  void listen(again, (line) => void (tail += line.type === 'tail' ? bytesOf(line) : ''))
  await eventually('the tail', () => tail.includes('user data ran on web-1') || undefined)
  again.response.destroy()

  // Killed from outside: crashed, and not started again by itself.
  signalProcess(pid, 'SIGKILL')
  expect(await statusWhen('the crash', ({ state }) => state === 'stopped')).toMatchObject({
    incarnation: 1,
    endReason: 'crashed',
  })
  expect((await ask('POST', TOKEN, 'x')).status).toBe(409)

  // Started again it has its disk, and its user data does not run twice.
  await store.patch(Instance, key, { spec: { incarnation: 2 } })
  await statusWhen('the second start', ({ state, incarnation }) => state === 'running' && incarnation === 2)
  const before = printed.length
  const second = await ask('GET')
  void listen(second, (line) => void (printed += line.type === 'output' ? bytesOf(line) : ''))
  await eventually('the second prompt', () => printed.slice(before).includes('root@web-1:~#') || undefined)
  await ask('POST', TOKEN, 'cat /data/note\n')
  // The guest's host keys may come between the command and what it prints.
  await eventually('the note', () => printed.slice(before).includes('kept') || undefined)
  expect(printed.slice(before)).not.toContain('user data ran')

  // Stopped softly, then deleted: nothing is left.
  await store.patch(Instance, key, {
    spec: { power: 'stopped', stop: { id: 'op-1', type: 'soft', timeoutSeconds: 60, timeoutAction: 'fail' } },
  })
  expect(await statusWhen('the stop', ({ stop }) => stop !== undefined)).toMatchObject({
    state: 'stopped',
    endReason: 'requested',
    stop: { id: 'op-1', outcome: 'stopped' },
  })
  await store.delete(Instance, key)
  await store.delete(Volume, { namespace, name: 'boot' })
  await eventually('the end of everything', async () => {
    await releaseRemoved(store, namespace)
    return (
      ((await store.get(Volume, { namespace, name: 'boot' })) === undefined &&
        (await store.get(Instance, key)) === undefined) ||
      undefined
    )
  })
  expect(await readdir(join(folder, 'agent', 'guests'))).toEqual([])
  expect(await readdir(join(folder, 'agent', 'volumes'))).toEqual([])
  await stopAgent('SIGTERM')
})

it('has one agent per folder', async () => {
  await stopAgent('SIGKILL')
  await startAgent()
  const first = agent
  await expect(startAgent()).rejects.toThrow('ended with 1')
  agent = first
  await stopAgent('SIGTERM')
})
