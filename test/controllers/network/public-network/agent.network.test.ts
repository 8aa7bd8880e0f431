/** An agent as it is run on hosts of a network of OVN: its guest reads its user data from the metadata service at its
 *  first boot, because its disk only says where it is, and reads nothing once the service is switched off for it. */
import type { ChildProcess } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { networkOf } from '../../../../controllers/network/public-network/index.ts'
import { portOf } from '../../../../controllers/network/public-network/port.ts'
import { openOvn } from '../../../../controllers/network/ovn/open-ovn.ts'
import type { Ovn } from '../../../../controllers/network/ovn/ovn.ts'
import { systemClock as clock } from '../../../../kit/sys/clock.ts'
import { silentLog as log } from '../../../../kit/sys/log.ts'
import { nodeBinary, signalProcess } from '../../../../kit/sys/process.ts'
import {
  type InstanceSpec,
  type InstanceStatus,
  NODE_REPORT_NAME,
  nodeNamespace,
} from '../../../../resources/instance/index.ts'
import { instanceSpec } from '../../../agents/node/instance-spec.ts'
import { IMAGE_FOLDER, tinyLinux } from '../../../agents/node/real-host.ts'
import { asLineProcess, type LineProcess } from '../ovn/line-process.ts'
import type { ObjectOrders } from './ovn-kubernetes.ts'
import { bringWhole } from './whole-network.ts'
import { CENTRAL, openOvnWorld, type OvnWorld } from '../ovn/ovn-world.ts'

const HOST = 'h1'
const ZONE_NAME = 'z1'
const NAME = 'guest'
const namespace = nodeNamespace(HOST)
const PROGRAM = `#!/bin/sh
echo "user data ran on $(hostname)"
while sleep 1; do
  printf 'GET /meta-data HTTP/1.0\\r\\nHost: 169.254.169.254\\r\\nUser-Agent: Cloud-Init/test\\r\\n\\r\\n' |
    nc -w 3 169.254.169.254 80 | sed -n 's,^HTTP/1.1 ,the service answers ,p'
done
`
const base = instanceSpec()
const INTERFACE: InstanceSpec['interfaces'][number] = {
  macAddress: '52:54:00:00:00:01',
  kind: 'public',
  ipv6: { address: '2001:db8:1:1::1', prefix: 64, gateway: 'fe80::1' },
  routedPrefixes: ['2001:db8:1:1::/64'],
}
const spec = instanceSpec({
  interfaces: [INTERFACE],
  metadata: { ...base.metadata, isEnabled: true, zone: ZONE_NAME, userDataSecretName: 'user-data' },
})

let world: OvnWorld
let ovn: Ovn
let kubernetes: LineProcess
let startAgent: () => ChildProcess
let agent: ChildProcess
const ask = <What extends keyof ObjectOrders>(what: What, order: ObjectOrders[What]) =>
  kubernetes.order({ ...order, do: what })
const folderOf = () => join(world.folder, 'agent')

beforeAll(async () => {
  await tinyLinux()
  world = await openOvnWorld()
  ovn = openOvn({ northbound: world.remote, clock, log })
  const zone = { displayName: 'Z', region: 'r', isClosed: false, capabilities: [] }
  const network = networkOf(ZONE_NAME, zone, { pools: [], gatewayNodes: [] })
  await bringWhole(ovn, network, [portOf(NAME, INTERFACE, [HOST])])
  kubernetes = asLineProcess(
    world.start('fabric', nodeBinary(), join(import.meta.dirname, 'ovn-kubernetes.ts'), world.folder, CENTRAL),
    'Kubernetes',
  )
  const { kubeconfig } = (await kubernetes.next()) as { readonly kubeconfig: string } // the process says so
  await ask('create', { kind: 'Namespace', object: { metadata: { name: namespace }, spec: {} } })
  await ask('create', {
    kind: 'Secret',
    object: {
      metadata: { namespace, name: 'user-data' },
      data: { userData: Buffer.from(PROGRAM).toString('base64') },
    } as object,
  })
  await ask('create', {
    kind: 'Volume',
    object: {
      metadata: { namespace, name: 'boot' },
      spec: {
        storage: { namespace: 'acct-1', name: 's', uid: 's' },
        sizeGibibytes: 1,
        source: { kind: 'template', name: 'tiny-linux' },
      },
    },
  })
  await ask('create', { kind: 'Instance', object: { metadata: { namespace, name: NAME }, spec } })
  startAgent = () =>
    world.start(
      HOST,
      'env',
      `SVCCLOUD_NODE_NAME=${HOST}`,
      `SVCCLOUD_KUBECONFIG=${kubeconfig}`,
      `SVCCLOUD_DATA=${folderOf()}`,
      'SVCCLOUD_HYPERVISOR=qemu',
      `SVCCLOUD_IMAGE_CACHE=${IMAGE_FOLDER}`,
      'SVCCLOUD_GUEST_NETWORK=ovn',
      'SVCCLOUD_HOST=192.0.2.1',
      'SVCCLOUD_LOG_LEVEL=error',
      nodeBinary(),
      join(import.meta.dirname, '../../../../agents/node/main.ts'),
    )
  agent = startAgent()
})
afterAll(async () => {
  ovn?.close()
  await kubernetes?.close()
  for (const guest of await readdir(join(folderOf(), 'guests')).catch(() => [])) {
    const pid = Number(await readFile(join(folderOf(), 'guests', guest, 'qemu.pid'), 'utf8').catch(() => '0'))
    if (pid > 0) signalProcess(pid, 'SIGKILL')
  }
  await world?.close()
})

const PATIENCE = { timeout: 90_000, interval: 200 }
const args = () => readFile(join(folderOf(), 'guests', NAME, 'console.log'), 'utf8').catch(() => '')
const latest = async () => (await args()).trimEnd().split('\n').at(-1) ?? ''

test('the agent reports what its host offers, and runs its guest with what the metadata service returns', async () => {
  await expect
    .poll(
      async () =>
        (
          (await ask('get', { kind: 'NodeReport', key: { namespace, name: NODE_REPORT_NAME } })) as {
            readonly spec: { readonly features: readonly string[] }
          } | null
        )?.spec.features,
      PATIENCE,
    )
    .toEqual(['public-network', 'metadata-service'])
  await expect
    .poll(
      async () =>
        (
          (await ask('get', { kind: 'Instance', key: { namespace, name: NAME } })) as {
            readonly status?: InstanceStatus
          } | null
        )?.status?.state,
      PATIENCE,
    )
    .toBe('running')
  await expect.poll(args, PATIENCE).toContain('user data ran on web-1')
})

test('which can be switched off and on while it runs', async () => {
  await expect.poll(latest, PATIENCE).toContain('the service answers 200')
  const setting = (isEnabled: boolean) =>
    ask('patch', { kind: 'Instance', key: { namespace, name: NAME }, patch: { spec: { metadata: { isEnabled } } } })
  await setting(false)
  await expect.poll(latest, PATIENCE).toContain('the service answers 404')
  await setting(true)
  await expect.poll(latest, PATIENCE).toContain('the service answers 200')
})

test('and answers again after the agent was killed', async () => {
  agent.kill('SIGKILL')
  await expect
    .poll(async () => (await world.run(HOST, 'ip', '-brief', 'link')).includes('svcmetadata'), PATIENCE)
    .toBe(false)
  const before = (await args()).length
  agent = startAgent()
  await expect.poll(async () => (await args()).slice(before), PATIENCE).toContain('the service answers 200')
})
