import { describe, expect, test } from 'vitest'
import { changesBetween } from '../../changes/kit/judge.ts'
import { serverChanges } from '../../changes/server.ts'
import { NO_FIREWALL } from '../../domain/server/firewall.ts'
import type { ServerFacts } from '../../domain/server/rules.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import { Plan, Template } from '../../resources/catalog/index.ts'
import { Server, type ServerSpec } from '../../resources/server/index.ts'
import { PUBLIC_KEY } from '../apiserver/cloud.ts'
import { withZones } from './world.ts'

const back = { networkId: 'back' }
const SPEC: ServerSpec = Server.spec.parse({
  zone: 'z1',
  hostname: 'web',
  plan: 'tiny',
  template: 'linux',
  desiredPower: 'stopped',
  storageGibibytes: 10,
  sshKeys: [PUBLIC_KEY],
  networks: [back],
})
const FACTS: ServerFacts = {
  id: 'web',
  state: 'stopped',
  isProtected: false,
  isDeleting: false,
  isHostUnreachable: false,
  plan: 'tiny',
  storageGibibytes: 10,
  activeOperation: undefined,
}
const BUSY = { activeOperation: { id: 'op', kind: 'server.metadata' } } as const

const object = (kind: string, name: string, spec: object): KubeObject =>
  ({ apiVersion: 'svccloud.dev/v1alpha1', kind, metadata: { name }, spec }) as KubeObject // what is read of it
const plan = (name: string, memoryMebibytes: number, storageGibibytes: number) =>
  [Plan, object('Plan', name, { memoryMebibytes, storageGibibytes })] as const
const WORLD = withZones(plan('tiny', 192, 10), plan('large', 1_024, 20), plan('small', 64, 10), plan('flat', 192, 5), [
  Template,
  object('Template', 'linux', { minMemoryMebibytes: 128 }),
])
const filter = { ...NO_FIREWALL, enabled: true, rules: [] }

describe('the changes between two specs', () => {
  test.each<readonly [string, Partial<ServerSpec>, Partial<ServerSpec>, readonly string[]]>([
    ['nothing', {}, {}, []],
    ['power', {}, { desiredPower: 'running' }, ['start']],
    ['no power', { desiredPower: 'running' }, { desiredPower: 'stopped' }, ['stop']],
    ['another plan', {}, { plan: 'large' }, ['change_plan']],
    ['more storage', {}, { storageGibibytes: 20 }, ['change_plan']],
    ['another plan and power', {}, { plan: 'large', desiredPower: 'running' }, ['change_plan']],
    ['a network', {}, { networks: [back, { networkId: 'front' }] }, ['attach_network']],
    ['no network', {}, { networks: [] }, ['detach_network']],
    ['another network', {}, { networks: [{ networkId: 'front' }] }, ['attach_network', 'detach_network']],
    [
      'networks in another order',
      { networks: [back, { networkId: 'a' }] },
      { networks: [{ networkId: 'a' }, back] },
      [],
    ],
    ['another address', {}, { networks: [{ ...back, ipv4Address: '10.1.0.9' }] }, ['readdress']],
    [
      'what takes effect at once',
      {},
      { title: 'b', sshKeys: [], haPolicy: 'none', migrationPolicy: 'strict' },
      ['describe', 'keys', 'ha_policy', 'migration_policy'],
    ],
    ['another hostname', {}, { hostname: 'other' }, ['remake']],
  ])('are, with %s', (_what, before, after, names) => {
    const made = changesBetween(serverChanges, { ...SPEC, ...before }, { ...SPEC, ...after })
    expect(made.map(({ name }) => name)).toEqual(names)
  })
})

/** Asks whether the change of that name is allowed. */
const ask =
  (
    name: string,
    facts: Partial<ServerFacts>,
    after: Partial<ServerSpec> = {},
    options?: Readonly<Record<string, string>>,
  ) =>
  () => {
    const { allow } = serverChanges.changes.find((change) => change.name === name) ?? expect.fail(name)
    const subject = {
      accountId: 'acct',
      id: 'web',
      spec: { ...SPEC, ...after },
      before: SPEC,
      facts: { ...FACTS, ...facts },
    }
    allow?.({ ...subject, options }, WORLD)
  }
const create = (spec: Partial<ServerSpec>) => () =>
  serverChanges.create.allow?.({ accountId: 'acct', id: 'web', spec: { ...SPEC, ...spec }, facts: undefined }, WORLD)

test.each<readonly [string, () => void, string]>([
  ['made without keys', create({ sshKeys: [] }), 'sshKeys: a server needs at least one SSH key'],
  ['made with a boot storage', create({ bootStorageId: 'a' }), 'spec.bootStorageId is written by the platform only'],
  ['made for an edge', create({ managedBy: 'edge:e' }), 'spec.managedBy and spec.sharedAddresses are written'],
  ['made with an init script', create({ initScriptId: 'a' }), 'initScriptId: is set through the API only'],
  ['made with a filter that nothing applies', create({ zone: 'bare', firewall: filter }), 'Nothing in zone bare'],
  ['made with a schedule that nothing keeps', create({ backupSchedule: '0 3 * * *' }), 'no place for backups'],
  ['renamed', ask('remake', {}, { hostname: 'other' }), 'hostname: cannot be changed'],
  ['started while it runs', ask('start', { state: 'started' }), 'only a stopped one can be started'],
  ['stopped while it is stopped', ask('stop', {}), 'only a started one can be stopped'],
  ['given an unknown plan', ask('change_plan', {}, { plan: 'none' }), 'plan: there is no plan none'],
  ['given its own plan', ask('change_plan', {}, {}, { grow_storage: 'true' }), 'plan: is the plan of the server'],
  ['given too little memory', ask('change_plan', {}, { plan: 'small' }), 'the template needs 128 MiB'],
  ['given less storage', ask('change_plan', {}, { plan: 'flat' }), 'its storage of 5 GiB is smaller'],
  ['made smaller', ask('change_plan', {}, { storageGibibytes: 9 }), 'storageGibibytes: the boot storage has 10 GiB'],
  ['made larger than any', ask('change_plan', {}, { storageGibibytes: 16_385 }), 'storageGibibytes: must be at most'],
  ['given another plan while it runs', ask('change_plan', { state: 'started' }, { plan: 'large' }), 'Stop it first'],
  ['given metadata while it is busy', ask('metadata', BUSY), 'Another operation runs'],
  ['filtered while it is busy', ask('firewall', BUSY), 'Another operation runs'],
  ['filtered where nothing does it', ask('firewall', {}, { zone: 'bare', firewall: filter }), 'Nothing in zone bare'],
  ['attached while it is busy', ask('attach_network', BUSY), 'Another operation runs'],
  ['detached while it is busy', ask('detach_network', BUSY), 'Another operation runs'],
  [
    'given another address',
    ask('readdress', {}, { networks: [{ ...back, ipv4Address: '10.1.0.9' }] }),
    'networks.0: cannot be changed: take the server out first',
  ],
  ['left without keys', ask('keys', {}, { sshKeys: [] }), 'sshKeys: a server needs at least one SSH key'],
])('a server is not %s', (_what, work, expected) => {
  expect(work).toThrow(expected)
})

test('the operation of another plan knows what the server had, and whether it starts', () => {
  const { stanza } = serverChanges.changes.find(({ name }) => name === 'change_plan') ?? expect.fail()
  const subject = { accountId: 'acct', id: 'web', spec: { ...SPEC, desiredPower: 'running' as const }, facts: FACTS }
  const had = { previous_plan: 'tiny', previous_storage_gibibytes: '10' }
  expect(stanza?.(subject)).toEqual({ gibibytes: 10, arguments: { ...had, start: 'true' } })
  // Over REST the desired power says nothing about the request.
  expect(stanza?.({ ...subject, options: { start: 'false' } })).toEqual({ gibibytes: 10, arguments: had })
})
