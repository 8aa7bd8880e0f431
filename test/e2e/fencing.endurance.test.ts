/** Lost hosts, with real guests on shared storage: one whose agent hangs while its guests go on, and one that loses its
 *  power. Their servers go on elsewhere with what is on their disks, and nothing of them is left when a host comes
 *  back. */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { environment, signalProcess } from '../../kit/sys/process.ts'
import type { NodeSpec, NodeStatus } from '../../resources/node/index.ts'
import type { ServerStatus } from '../../resources/server/index.ts'
import { isAnyMissing, scriptOf } from '../docs/blocks.ts'
import { until } from '../eventually.ts'
import { Customer, type Server } from './customer.ts'
import { clearAway, newFolder, Product } from './product.ts'
import { UNREAD } from './warnings.ts'

const run = promisify(execFile)
const PATIENCE_MILLISECONDS = 180_000

const missing = await isAnyMissing('curl', 'jq', 'kubectl')

let data: string
let product: Product
let customer: Customer
let kept: Server
let cold: Server

beforeAll(async () => {
  data = await newFolder()
  product = await Product.start({ data, flags: ['--hypervisor', 'qemu', '--nodes', 'eu-1a=3'], warnings: UNREAD })
  customer = await Customer.signUp(() => product, 'fencing@example.com')
  await customer.addSshKey()
})
afterAll(() => clearAway(product, data))

interface Stored<Spec, Status> {
  readonly metadata: { readonly name: string }
  readonly spec: Spec
  readonly status?: Status
}
const list = async <Spec, Status>(plural: string) =>
  (await product.kubernetes(`/apis/svccloud.dev/v1alpha1/${plural}`)).items as unknown as readonly Stored<
    Spec,
    Status
  >[] // a list of that kind
const nodeOf = async (server: Server) =>
  (await list<unknown, ServerStatus>('servers')).find(({ metadata }) => metadata.name === server.id)?.status?.nodeName
const statusOf = async (node: string) =>
  (await list<NodeSpec, NodeStatus>('nodes')).find(({ metadata }) => metadata.name === node)?.status
const untilNode = (node: string, state: NodeStatus['state']) =>
  until(
    `${node} to be ${state}`,
    () => statusOf(node),
    (status) => status?.state === state,
    PATIENCE_MILLISECONDS,
  )

/** Presses the button of the node's management controller. */
async function press(node: string, type: 'On' | 'ForceOff'): Promise<void> {
  const { username, password } = JSON.parse(await readFile(join(data, 'bmc/access.json'), 'utf8')) as {
    username: string
    password: string
  } // written by the product
  await run('curl', [
    '-sS',
    '--fail',
    '--cacert',
    join(data, 'bmc/ca.crt'),
    '-u',
    `${username}:${password}`,
    '-H',
    'content-type: application/json',
    '-d',
    JSON.stringify({ ResetType: type }),
    `${product.endpoints.bmc_url}/redfish/v1/Systems/${node}/Actions/ComputerSystem.Reset`,
  ])
}

async function operate(
  path: string,
  body: object,
): Promise<{ readonly status: number; readonly body: { readonly operation: { readonly id: string } } }> {
  const token = await readFile(product.endpoints.operator_token_file ?? '', 'utf8')
  const response = await fetch(`${product.endpoints.operator_url}/v1/operator${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token.trim()}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: response.status, body: (await response.json()) as { operation: { id: string } } }
}

async function onConsole(server: Server, line: string, answer: RegExp): Promise<void> {
  const console = customer.console(server.id)
  try {
    await console.see(/:~# /, 0)
    await console.ask(line, answer)
  } finally {
    console.close()
  }
}

const untilRecovered = (server: Server, lost: string) =>
  until(
    `${server.hostname} to be away from ${lost}`,
    async () => ({ ...(await customer.server(server.id)), node: await nodeOf(server) }),
    ({ state, active_operation, node }) =>
      active_operation === null && state !== 'error' && node !== undefined && node !== lost,
    PATIENCE_MILLISECONDS,
  )

it('makes two servers on one node, one of which is to be restarted elsewhere', async () => {
  const made = async (hostname: string, plan: object) => {
    const { server, operation } = await customer.createServer({
      zone: 'eu-1a',
      hostname,
      plan: 'tiny',
      template: 'tiny-linux',
      ...plan,
    })
    expect(await customer.finished(operation.id)).toMatchObject({ status: 'succeeded' })
    return server
  }
  kept = await made('kept', {})
  cold = await made('cold', {})
  expect(await customer.request('PUT', `/v1/servers/${cold.id}/ha-policy`, { ha_policy: 'none' })).toMatchObject({
    status: 200,
    body: { ha_policy: 'none', ha_status: 'available', ha_status_reason: null },
  })
  expect(await nodeOf(cold)).toBe(await nodeOf(kept))
  await onConsole(kept, 'echo what-was-written > /data/marker && sync && echo is-$((40+2))', /is-42/)
})

it('leaves a host alone whose agent hangs, until somebody has it fenced', async () => {
  const lost = (await nodeOf(kept)) ?? ''
  const agent = (await product.processes()).get(`agent-${lost}`) ?? 0
  signalProcess(agent, 'SIGSTOP')
  await untilNode(lost, 'unreachable')
  await until(
    'others to say that the host answers',
    async () => (await list<unknown, { answer: string }>('observations')).map(({ status }) => status?.answer),
    (answers) => answers.length === 2 && answers.every((answer) => answer === 'host'),
    PATIENCE_MILLISECONDS,
  )
  expect(await product.guests()).toHaveLength(2) // they run well, and nobody knows
  expect(
    (await list<{ kind: string }, unknown>('operations')).filter(({ spec }) => spec.kind === 'node.fence'),
  ).toEqual([])

  expect(await operate(`/nodes/${lost}/fence`, { method: 'auto', reason: 'Its agent hangs.' })).toMatchObject({
    status: 202,
    body: { operation: { kind: 'node.fence', node_id: lost } },
  })
  await untilNode(lost, 'fenced')
  expect((await statusOf(lost))?.fence).toMatchObject({ method: 'power_off' })
  expect(signalProcess(agent, 0)).toBe(false)

  expect(await untilRecovered(kept, lost)).toMatchObject({ state: 'started' })
  expect(await untilRecovered(cold, lost)).toMatchObject({ state: 'stopped' })
  expect(await product.guests()).toHaveLength(1)
  await onConsole(kept, 'cat /data/marker', /what-was-written/)
  const { body } = await customer.request<{ items: readonly { kind: string; status: string; actor: string }[] }>(
    'GET',
    `/v1/operations?resource=server:${kept.id}`,
  )
  expect(body.items[0]).toMatchObject({ kind: 'server.recover', status: 'succeeded', actor: 'system:fencing' })
})

it('lets the host in again with another boot, without its guests', async () => {
  const lost =
    (await list<NodeSpec, NodeStatus>('nodes')).find(({ status }) => status?.state === 'fenced')?.metadata.name ?? ''
  const before = await statusOf(lost)
  await press(lost, 'On')
  await untilNode(lost, 'ready')
  const after = await statusOf(lost)
  expect(after?.fence).toBeUndefined()
  expect(after?.bootId).not.toBe(before?.bootId)
  expect(await product.guests()).toHaveLength(1)
  expect(await customer.server(kept.id)).toMatchObject({ state: 'started' })
})

it('fences a host that lost its power by itself, and its servers start elsewhere', async () => {
  expect(await customer.finished((await customer.change('POST', `/v1/servers/${cold.id}/start`)).id)).toMatchObject({
    status: 'succeeded',
  })
  const lost = (await nodeOf(kept)) ?? ''
  await press(lost, 'ForceOff')
  await untilNode(lost, 'fenced')
  expect(await untilRecovered(kept, lost)).toMatchObject({ state: 'started' })
  await onConsole(kept, 'cat /data/marker', /what-was-written/)
  expect((await statusOf(lost))?.operation).toMatchObject({
    kind: 'node.fence',
    status: 'succeeded',
    actor: 'system:fencing',
  })
})

it.runIf(!missing)('does what the guide of lost hosts says', async () => {
  const { PATH, LANG } = environment()
  const { stdout } = await run('bash', ['-eu', '-c', await scriptOf('docs/high-availability.md')], {
    cwd: data,
    timeout: PATIENCE_MILLISECONDS,
    env: { PATH, LANG, HOME: data, DATA: data, KUBECONFIG: product.endpoints.kubeconfig },
  })
  expect(stdout).toMatch(/node\.fence +eu-1a-2 +succeeded/)
})

it('leaves nothing behind when the servers are deleted', async () => {
  for (const { id } of [kept, cold])
    expect(await customer.finished((await customer.change('DELETE', `/v1/servers/${id}`)).id)).toMatchObject({
      status: 'succeeded',
    })
  await until(
    'nothing to be left',
    () => product.leftovers(),
    (left) => left.length === 0,
    PATIENCE_MILLISECONDS,
  )
})
