/** What the controller of databases decides, row by row. */
import { describe, expect, test } from 'vitest'
import { archiveObstacleIn } from '../../../../controllers/nouns/database/archive.ts'
import {
  databaseDemand,
  databaseDocument,
  hostOf,
  databaseMachine,
} from '../../../../controllers/nouns/database/machine.ts'
import type { DatabaseObject, Observed, StorageObject } from '../../../../controllers/nouns/database/observed.ts'
import { plan } from '../../../../controllers/nouns/database/plan.ts'
import {
  type Machine,
  machineName,
  REPLACE_AFTER_SECONDS,
} from '../../../../controllers/nouns/managed-machine/index.ts'
import type { ArchiveRow } from '../../../../db/database/index.ts'
import { defined } from '../../../../domain/defined.ts'
import { Database, databaseStateOf, toDatabaseView } from '../../../../resources/database/index.ts'
import { Storage } from '../../../../resources/storage/index.ts'
import { openSimulatedObjectStorage } from '../../../object-storage.ts'
import { STARTED } from '../managed-machine/started.ts'

const NOW = new Date('2026-01-01T00:00:00Z')
const DAY = 86_400_000
const HOST = '10.0.0.5'
const certificateFor = (host: string, days: number) => ({
  certificate: 'certificate',
  sealedKey: 'k.sealed',
  host,
  expiresAt: new Date(NOW.getTime() + days * DAY),
})
const CLAIM: NonNullable<Observed['claim']> = {
  zone: 'z',
  name: 'shop',
  networkId: 'n',
  sealedPassword: 'k.password',
  passwordGeneration: 1,
  certificate: certificateFor(HOST, 300),
  generation: 2,
}
const REPORT = {
  isOpen: true,
  failure: '',
  observedAt: '2026-01-01T00:00:00.000Z',
  earliestAt: '2025-12-31T03:00:01.000Z',
  latestAt: '2026-01-01T00:00:00.000Z',
  gaps: [],
  backups: [
    {
      label: '20251231-030000F',
      startedAt: '2025-12-31T03:00:00.000Z',
      completedAt: '2025-12-31T03:00:00.000Z',
      bytes: 1,
      isRestorable: true,
    },
  ],
}
const ROW: ArchiveRow = {
  accountId: 'a',
  databaseId: 'db',
  zone: 'z',
  accessKeyId: 'KEY',
  sealedSecret: 'k.secret',
  sealedCipherKey: 'k.cipher',
  bucketPrefix: 'prefix-',
  origin: null,
  keptUntil: null,
}
const ARCHIVE = { row: ROW, isOpen: true, isBounded: true, authority: 'pem' }
const stanza = (
  kind: 'database.create' | 'database.restore' | 'database.delete',
  deadlineAt = '2026-01-01T00:30:00Z',
) => ({
  id: 'op',
  kind,
  requestedAt: NOW.toISOString(),
  deadlineAt,
  actor: 'user:x',
  requestId: 'request',
})
function ended(status: 'succeeded' | 'failed') {
  const { id, kind, actor, deadlineAt, requestedAt: createdAt } = stanza('database.create')
  return { id, kind, actor, deadlineAt, createdAt, status, step: 'applied', stepIndex: 4, stepCount: 4, error: 'e' }
}
const database = (more: {
  readonly metadata?: object
  readonly spec?: object
  readonly status?: DatabaseObject['status']
}): DatabaseObject => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'Database',
  metadata: { name: 'db', namespace: 'acct-a', uid: 'u', generation: 1, ...more.metadata },
  spec: Database.spec.parse({
    zone: 'z',
    name: 'shop',
    networkId: 'n',
    databaseName: 'shop',
    ownerName: 'owner',
    ...more.spec,
  }),
  ...defined({ status: more.status }),
})
const CREATING = database({ spec: { operation: stanza('database.create') } })
const RUNNING = database({
  spec: { operation: stanza('database.create') },
  status: { isMade: true, operation: ended('succeeded') },
})
const DELETING = database({
  metadata: { deletionTimestamp: NOW.toISOString() },
  spec: { operation: stanza('database.delete') },
  status: { isMade: true },
})

const SERVER_ID = machineName({ uid: 'u' }, 'primary')
function machine(more: Partial<Machine> = {}): Machine {
  return {
    ...STARTED,
    role: 'primary',
    serverId: SERVER_ID,
    serverUid: 'uid',
    plan: 'db-1c-2g',
    createdAt: NOW.toISOString(),
    node: 'node',
    interfaces: [{ networkId: 'n', ipv4Address: HOST }] as unknown as Machine['interfaces'], // the rest is not read
    ...more,
  }
}
const storage = (status?: StorageObject['status'], metadata: object = {}, serverId = SERVER_ID): StorageObject => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'Storage',
  metadata: { name: machineName({ uid: 'u' }, 'data'), namespace: 'acct-a', ...metadata },
  spec: Storage.spec.parse({ zone: 'z', sizeGibibytes: 10, serverId }),
  ...defined({ status }),
})
const ATTACHED = storage({ state: 'online', serverId: SERVER_ID })

const SEEN: Observed = {
  accountId: 'a',
  claim: CLAIM,
  networks: ['10.0.0.0/24'],
  machines: [],
  lost: [],
  storage: undefined,
  missingStorage: undefined,
  edits: [],
  spareDisks: [],
  archive: undefined,
  archiveObstacle: '',
  origin: undefined,
  editor: 'user:x',
}
type Said = NonNullable<NonNullable<Machine['report']>['postgresql']>
/** It runs what it must, and reports it. */
function settled(of: DatabaseObject, more: Partial<Observed> = {}, said: Partial<Said> = {}): Partial<Observed> {
  const seen = { ...SEEN, machines: [machine()], storage: ATTACHED, ...more }
  const { configuration } = databaseDemand(of, seen)
  const report = { services: {}, postgresql: { state: 'running', passwordGeneration: 1, ...said } as const }
  return { ...seen, machines: [machine({ delivered: configuration, running: configuration, isHealthy: true, report })] }
}

/** Effects, changes and the end of the operation, in words. */
const decided = (object: DatabaseObject, seen: Partial<Observed>): string =>
  plan(object, { ...SEEN, ...seen }, NOW)
    .flatMap((action) => {
      if (action.do === 'effect') return [action.name]
      if (action.do === 'operation')
        return [`${action.step}${action.outcome === undefined ? '' : ` ${action.outcome}`}`]
      if (action.do === 'ensure' || action.do === 'remove') return [`${action.do} ${action.type.kind}`]
      return ['change', 'finalized'].includes(action.do) ? [action.do] : []
    })
    .join(', ')
const statusOf = (object: DatabaseObject, seen: Partial<Observed>) =>
  plan(object, { ...SEEN, ...seen }, NOW).flatMap((action) => (action.do === 'status' ? [action.status] : []))[0]
const stateOf = (object: DatabaseObject, status: object = {}) =>
  databaseStateOf({
    name: 'db',
    spec: object.spec,
    status: { ...object.status, ...status },
    createdAt: NOW.toISOString(),
    isDeleting: object.metadata.deletionTimestamp !== undefined,
  } as unknown as Parameters<typeof databaseStateOf>[0])

const REFUSED: DatabaseObject['status'] = {
  conditions: [
    {
      type: 'Claimed',
      status: 'False',
      reason: 'NameTaken',
      message: 'taken',
      lastTransitionTime: '',
      observedGeneration: 1,
    },
  ],
}

const RESTORING = database({
  spec: { operation: stanza('database.restore'), restoredFrom: { databaseId: 'before' } },
})
/** Its store no longer knows it. */
const forgotten = (): Partial<Observed> => ({
  ...settled(RUNNING, { archive: ARCHIVE }),
  archive: { ...ARCHIVE, isOpen: false },
})
/** Unhealthy all the while. */
function restoringFor(seconds: number): Partial<Observed> {
  const seen = settled(RESTORING, { origin: ROW }, { state: 'restoring', passwordGeneration: 0 })
  const judgedSince = new Date(NOW.getTime() - seconds * 1_000).toISOString()
  return { ...seen, machines: (seen.machines ?? []).map((each) => ({ ...each, isHealthy: false, judgedSince })) }
}

const SECONDS_OF_CREATION = 30 * 60
const before = (seconds: number) => new Date(NOW.getTime() - seconds * 1_000).toISOString()
const restoringSince = (seconds: number): DatabaseObject =>
  database({
    spec: {
      operation: { ...stanza('database.restore'), requestedAt: before(seconds) },
      restoredFrom: { databaseId: 'before' },
    },
  })
/** Its machine has said so since it was made. */
function saying(state: Said['state'], madeSecondsAgo = 0): Partial<Observed> {
  const seen = settled(RESTORING, { origin: ROW }, { state, passwordGeneration: 0 })
  const [createdAt, reportedAt] = [before(madeSecondsAgo), NOW.toISOString()]
  const machines = seen.machines?.map((each) => ({ ...each, createdAt, reportedAt, isHealthy: false }))
  return { ...seen, machines: machines ?? [] }
}

const NIGHTLY = database({ ...RUNNING, spec: { ...RUNNING.spec, backupSchedule: '0 0 * * *' } })
const withMachine = (of: DatabaseObject, more: Partial<Machine>): Partial<Observed> => {
  const seen = settled(of)
  return { ...seen, machines: (seen.machines ?? []).map((each) => ({ ...each, ...more })) }
}
const OLD = { imageVersion: '1', newestImageVersion: '2' }
/** Unhealthy for so long that it would be exchanged. */
const ON_TRIAL: Partial<Machine> = {
  isHealthy: false,
  judgedSince: new Date(NOW.getTime() - REPLACE_AFTER_SECONDS * 10_000).toISOString(),
  reportedAt: NOW.toISOString(),
  diskExchange: { imageVersion: '2', isOver: false, error: '' },
}
const LOST_HOST: Partial<Machine> = {
  isHealthy: false,
  state: 'error',
  nodeState: 'fenced',
  reportedAt: new Date(NOW.getTime() - REPLACE_AFTER_SECONDS * 10_000).toISOString(),
}

test.each([
  ['made with kubectl: gets its operation', database({}), {}, 'change'],
  ['deleted with kubectl: gets its operation', database({ metadata: DELETING.metadata }), {}, 'change'],
  ['of no account', CREATING, { accountId: undefined, claim: undefined }, 'claimed failed'],
  ['without its network: waits', CREATING, { claim: undefined, networks: undefined }, 'claimed'],
  ['without a claim: claims', CREATING, { claim: undefined }, 'claim, claimed'],
  [
    'whose claim was refused',
    database({ spec: CREATING.spec, status: REFUSED }),
    { claim: undefined },
    'claimed failed',
  ],
  ['without a machine: makes it', CREATING, {}, 'ensure Server, machine'],
  [
    'whose machine is not started: has no storage yet',
    CREATING,
    { machines: [machine({ state: 'creating' })] },
    'machine',
  ],
  ['whose machine runs: gets its storage', CREATING, { machines: [machine()] }, 'ensure Storage, storage'],
  ['whose storage comes: is told nothing yet', CREATING, { machines: [machine()], storage: storage() }, 'storage'],
  [
    'without a certificate: gets one',
    CREATING,
    { machines: [machine()], storage: ATTACHED, claim: { ...CLAIM, certificate: undefined } },
    'certify, applied',
  ],
  ['with all of it: is told what to run', CREATING, { machines: [machine()], storage: ATTACHED }, 'deliver, applied'],
  ['that runs: is made', CREATING, settled(CREATING), 'applied succeeded'],
  [
    'that is not made in time',
    database({ spec: { operation: stanza('database.create', NOW.toISOString()) } }),
    { machines: [machine()] },
    'storage failed',
  ],
  [
    'that was not made: is left as it is',
    database({ spec: CREATING.spec, status: { operation: ended('failed') } }),
    { machines: [machine()] },
    '',
  ],
  [
    'whose zone has a store: gets an archive before it is told what to run',
    CREATING,
    { machines: [machine()], storage: ATTACHED, archive: { ...ARCHIVE, row: undefined, isOpen: false } },
    'archive, applied',
  ],
  [
    'with an archive and no backup: waits for the first',
    CREATING,
    settled(CREATING, { archive: ARCHIVE }, { archive: { ...REPORT, backups: [] } }),
    'archived',
  ],
  [
    'with its first backup: is made',
    CREATING,
    settled(CREATING, { archive: ARCHIVE }, { archive: REPORT }),
    'applied succeeded',
  ],
  ['running, forgotten by the store: is told to it again', RUNNING, forgotten(), 'archive'],
  [
    'restored: is told nothing while its origin cannot be read',
    RESTORING,
    { machines: [machine()], storage: ATTACHED },
    'restored',
  ],
  [
    'restored: is told what to begin as',
    RESTORING,
    { machines: [machine()], storage: ATTACHED, origin: ROW },
    'deliver, restored',
  ],
  [
    'that is being restored for a long time: keeps its machine',
    RESTORING,
    restoringFor(REPLACE_AFTER_SECONDS * 10),
    'restored',
  ],
  [
    'whose machine cannot restore: gets another, also long after',
    restoringSince(SECONDS_OF_CREATION * 2),
    saying('failed', SECONDS_OF_CREATION + REPLACE_AFTER_SECONDS),
    'remove Server, restored',
  ],
  [
    'whose next one cannot either, when a creation would be over: is given up',
    restoringSince(SECONDS_OF_CREATION),
    saying('failed'),
    'restored failed',
  ],
  ['before that: goes on', restoringSince(SECONDS_OF_CREATION - 1), saying('failed'), 'restored'],
  ['whose next one restores: goes on', restoringSince(SECONDS_OF_CREATION * 2), saying('restoring'), 'restored'],
  ['running: is left alone', RUNNING, settled(RUNNING), ''],
  ['with another name: is renamed', RUNNING, settled(RUNNING, { claim: { ...CLAIM, name: 'before' } }), 'rename'],
  [
    'whose certificate holds 31 days: keeps it',
    RUNNING,
    settled(RUNNING, { claim: { ...CLAIM, certificate: certificateFor(HOST, 31) } }),
    '',
  ],
  [
    'whose certificate holds 29 days: gets another',
    RUNNING,
    settled(RUNNING, { claim: { ...CLAIM, certificate: certificateFor(HOST, 29) } }),
    'certify',
  ],
  [
    'whose address is another: gets another certificate, and is told nothing before',
    RUNNING,
    { machines: [machine()], storage: ATTACHED, claim: { ...CLAIM, certificate: certificateFor('10.0.0.9', 300) } },
    'certify',
  ],
  ['whose machine is gone: gets another', RUNNING, { storage: ATTACHED }, 'ensure Server'],
  [
    'whose storage was detached from an exchanged machine: gets it back',
    RUNNING,
    { machines: [machine()], storage: storage({ state: 'online' }, {}, 'another') },
    'ensure Storage',
  ],
  [
    'whose machine has a disk that it does not boot from: loses that',
    RUNNING,
    settled(RUNNING, { spareDisks: [{ namespace: 'acct-a', name: 'op-1' }] }),
    'remove Storage',
  ],
  ['with a newer image for its machine, in the window: gets it', NIGHTLY, withMachine(NIGHTLY, OLD), 'upgrade'],
  ['with a newer image, outside of the window: is left alone', RUNNING, withMachine(RUNNING, OLD), ''],
  ['whose machine is on trial: keeps it, however long it is not well', RUNNING, withMachine(RUNNING, ON_TRIAL), ''],
  ['whose host was fenced: keeps its machine, as its data may be there', RUNNING, withMachine(RUNNING, LOST_HOST), ''],
  ['whose data is lost: is left as it is', RUNNING, { storage: storage({ state: 'error' }) }, ''],
  ['deleted: its machine goes first', DELETING, settled(RUNNING), 'remove Server, machine'],
  ['deleted, without a machine: its storage goes', DELETING, { storage: ATTACHED }, 'remove Storage, storage'],
  [
    'deleted, whose storage is going: waits for it',
    DELETING,
    { storage: storage(undefined, { deletionTimestamp: NOW.toISOString() }) },
    'storage',
  ],
  ['deleted, without anything: gives back its claims', DELETING, {}, 'release, released succeeded, finalized'],
] satisfies readonly [string, DatabaseObject, Partial<Observed>, string][])(
  'a database %s',
  (_name, object, seen, expected) => {
    expect(decided(object, seen)).toBe(expected)
  },
)

test('its data are not made again, blank, while nobody deleted them', () => {
  const without = { ...settled(RUNNING), storage: undefined }
  expect(decided(RUNNING, { ...without, missingStorage: 'lost' })).toBe('')
  expect(statusOf(RUNNING, { ...without, missingStorage: 'lost' })).toMatchObject({
    isHealthy: false,
    healthDetail: expect.stringMatching(/missing, and nobody deleted it/),
  })
  expect(statusOf(RUNNING, { ...without, missingStorage: 'lost' })).not.toHaveProperty('isLost')
  expect(statusOf(RUNNING, { ...without, missingStorage: 'removed' })).toMatchObject({ isLost: true })
  // also while it is being made
  expect(decided(CREATING, { machines: [machine()], missingStorage: 'lost' })).not.toContain('Storage')
  expect(decided(CREATING, { machines: [machine()] })).toContain('ensure Storage')
})

test('its machine is not made again beside one that may still run', () => {
  expect(decided(RUNNING, { storage: ATTACHED, lost: [SERVER_ID] })).toBe('')
  expect(decided(RUNNING, { storage: ATTACHED })).toBe('ensure Server')
})

describe('its state', () => {
  test.each([
    ['made', 'creating', stateOf(CREATING)],
    ['that was not made in time', 'error', stateOf(CREATING, { operation: ended('failed') })],
    ['that runs', 'running', stateOf(RUNNING, statusOf(RUNNING, settled(RUNNING)))],
    ['whose probe fails', 'running', stateOf(RUNNING, statusOf(RUNNING, { machines: [machine()], storage: ATTACHED }))],
    ['whose data is lost', 'error', stateOf(RUNNING, statusOf(RUNNING, { storage: storage({ state: 'error' }) }))],
    ['that is deleted', 'deleting', stateOf(DELETING)],
    [
      'that is deleted while it is made',
      'deleting',
      stateOf(database({ metadata: DELETING.metadata, spec: CREATING.spec })),
    ],
  ])('of one %s is %s', (_name, expected, state) => {
    expect(state).toBe(expected)
  })

  test('reports that it is not healthy while its machine does not run what it must', () => {
    expect(statusOf(RUNNING, settled(RUNNING))).toMatchObject({
      isHealthy: true,
      isConfigurationApplied: true,
      host: HOST,
    })
    const rotated = { ...settled(RUNNING), claim: { ...CLAIM, generation: 3, passwordGeneration: 2 } }
    const status = statusOf(RUNNING, rotated)
    expect(status).toMatchObject({ isHealthy: false, isConfigurationApplied: false })
    // The machine takes the old password still.
    expect(status).not.toHaveProperty('passwordGeneration')
    expect(statusOf(RUNNING, settled(RUNNING, {}, { passwordGeneration: 7 }))).toMatchObject({ passwordGeneration: 7 })
  })
})

test('says that its credentials are stale when its owner no longer gets in with those that were delivered', () => {
  const stale = settled(RUNNING, {}, { ownerSignsIn: false })
  expect(statusOf(RUNNING, stale)).toMatchObject({
    isHealthy: false,
    hasStaleCredentials: true,
    healthDetail: expect.stringContaining('Rotate the credentials'),
  })
  expect(decided(RUNNING, stale), 'its machine is left as it is').toBe(decided(RUNNING, settled(RUNNING)))
  for (const ownerSignsIn of [true, undefined])
    expect(statusOf(RUNNING, settled(RUNNING, {}, { ownerSignsIn }))).toMatchObject({
      isHealthy: true,
      hasStaleCredentials: false,
      healthDetail: '',
    })
  // What is said of the old password says nothing of the new one.
  const rotated = { ...stale, claim: { ...CLAIM, generation: 3, passwordGeneration: 2 } }
  expect(statusOf(RUNNING, rotated)).toMatchObject({ hasStaleCredentials: false })
})

test('its machine knows a verifier of the password and the disk with its data', () => {
  const found = databaseMachine([machine()])
  expect(hostOf(found, RUNNING.spec)).toBe(HOST)
  const document = databaseDocument(RUNNING, SEEN, {
    password: 'the password',
    key: 'key',
    archive: undefined,
    origin: undefined,
  })
  expect(JSON.stringify(document)).not.toContain('the password')
  expect(document?.postgresql).toMatchObject({
    diskSerial: machineName({ uid: 'u' }, 'data').replaceAll('-', '').slice(0, 20),
    passwordVerifier: expect.stringMatching(/^SCRAM-SHA-256\$4096:/),
    networks: ['10.0.0.0/24'],
  })
  expect(document?.nftables).toContain('policy drop;')
  expect(document?.nftables).toContain('    ip saddr 10.0.0.0/24 tcp dport 5432 accept\n')
})

test('its machine gets its archive, and its origin until it has started', () => {
  const repository = {
    endpoint: 'archive.internal',
    port: 443,
    region: 'us-east-1',
    bucket: 'b',
    authority: 'pem',
    accessKeyId: 'KEY',
    secretAccessKey: 'secret',
    cipherKey: 'cipher',
  }
  const secrets = { password: 'p', key: 'k', archive: repository, origin: { ...repository, bucket: 'origin' } }
  expect(databaseDocument(RUNNING, SEEN, secrets)?.postgresql).toMatchObject({
    archive: { repository: { bucket: 'b' }, retentionDays: 7, fullBackupAt: { hour: 3, minute: 0 } },
  })
  expect(databaseDocument(RUNNING, SEEN, secrets)?.postgresql).not.toHaveProperty('restore')
  const at = '2026-01-01T00:00:00Z'
  const restored = { databaseId: 'before', targetTime: at }
  const beginning = database({ spec: { operation: stanza('database.restore'), restoredFrom: restored } })
  expect(databaseDocument(beginning, SEEN, secrets)?.postgresql).toMatchObject({
    restore: { repository: { bucket: 'origin' }, targetTime: at },
  })
  const made = database({ spec: beginning.spec, status: { isMade: true } })
  expect(databaseDocument(made, SEEN, secrets)?.postgresql).not.toHaveProperty('restore')
  expect(databaseDocument(beginning, SEEN, { ...secrets, origin: undefined }), 'empty instead').toBeUndefined()
  const seen = { ...SEEN, machines: [machine()], storage: ATTACHED, archive: ARCHIVE }
  const before = databaseDemand(RUNNING, seen).configuration?.fingerprint
  const longer = database({ ...RUNNING, spec: { ...RUNNING.spec, backupRetentionDays: 14 } })
  expect(databaseDemand(longer, seen).configuration?.fingerprint, 'with another retention').not.toBe(before)
})

test('an archive is held to the quota of its storage, and says what of it is billed', () => {
  const outgrown = settled(RUNNING, { archive: { ...ARCHIVE, isBounded: false } })
  const { storageGibibytes, zone } = RUNNING.spec
  expect(plan(RUNNING, { ...SEEN, ...outgrown }, NOW)).toContainEqual(
    expect.objectContaining({ name: 'archive', input: expect.objectContaining({ zone, storageGibibytes }) }),
  )
  expect(decided(RUNNING, settled(RUNNING, { archive: ARCHIVE }))).not.toContain('archive')
  const usedBytes = (storageGibibytes * 4 + 1) * 1024 ** 3
  expect(statusOf(RUNNING, settled(RUNNING, { archive: { ...ARCHIVE, usedBytes } }))).toMatchObject({
    archiveBytes: usedBytes,
    healthDetail: expect.stringContaining('1 are billed as object storage'),
  })
})

test('without an archive says why, also where there was one', () => {
  const archiveObstacle = 'Nothing is archived.'
  const before = database({ spec: RUNNING.spec, status: { ...RUNNING.status, backups: REPORT } })
  expect(statusOf(before, settled(before, { archiveObstacle }))).toMatchObject({ archiveObstacle })
  const view = toDatabaseView({
    name: 'db',
    createdAt: '',
    isDeleting: false,
    spec: before.spec,
    status: { ...before.status, archiveObstacle },
  })
  expect(view.backups).toMatchObject({ is_enabled: false, archive_failure: archiveObstacle })
  expect(statusOf(RUNNING, settled(RUNNING)), 'with one').toMatchObject({ archiveObstacle: '' })
  const parts = { objectStorage: { stores: [], obstacle: 'nobody built it' } }
  expect(archiveObstacleIn(parts, 'z')).toMatch(/cannot be restored.*nobody built it/)
  const elsewhere = openSimulatedObjectStorage(['other']).offer
  expect(archiveObstacleIn({ objectStorage: elsewhere }, 'z')).toContain('none is configured for zone z')
  expect(archiveObstacleIn({ objectStorage: elsewhere }, 'other')).toBe('')
})

test('how its archive is follows from what its machine says', () => {
  const stateOf = (change: object, more: object = {}) =>
    statusOf(RUNNING, settled(RUNNING, more, { archive: { ...REPORT, ...change } }))
  expect(stateOf({})).toMatchObject({ archiveState: 'archiving' })
  expect(stateOf({ failure: 'the store is away' })).toMatchObject({ archiveState: 'failing' })
  expect(stateOf({ isOpen: false })).toMatchObject({ archiveState: 'none' })
  expect(stateOf({}, { archiveObstacle: 'Nothing is archived.' })).toMatchObject({ archiveState: 'none' })
  expect(statusOf(RUNNING, settled(RUNNING))).toMatchObject({ archiveState: 'none' })
  const pause = { reason: 'archive_full', since: '2026-01-01T01:00:00.000Z' } as const
  const failure = 'Archiving is paused.'
  const paused = stateOf({ failure, pause: { ...pause, state: 'paused', from: REPORT.latestAt } })
  expect(paused).toMatchObject({ archiveState: 'paused', backups: { pause: { ...pause, from: REPORT.latestAt } } })
  expect(stateOf({ failure, pause: { ...pause, state: 'resuming', from: null } })).toMatchObject({
    archiveState: 'resuming',
    backups: { pause: { ...pause, from: undefined } },
  })
  // A machine that is silent for a while has not resumed.
  const before = database({ spec: RUNNING.spec, status: { ...RUNNING.status, ...paused } })
  expect(statusOf(before, settled(before))).toMatchObject({ archiveState: 'paused' })
  expect(statusOf(before, settled(before, {}, { archive: REPORT })), 'once it has').toMatchObject({
    archiveState: 'archiving',
    backups: { pause: undefined },
  })
})

test('what can be restored is what its machine says, and stays for so long when it goes', () => {
  expect(statusOf(RUNNING, settled(RUNNING, {}, { archive: REPORT }))).toMatchObject({ backups: REPORT })
  const release = (object: DatabaseObject) =>
    plan(object, SEEN, NOW).flatMap((action) =>
      action.do === 'effect' && action.name === 'release' ? [action.input] : [],
    )[0]
  const gone = (more: object, status: object = { backups: REPORT }) =>
    database({ metadata: DELETING.metadata, spec: { operation: { ...stanza('database.delete'), ...more } }, status })
  expect(release(gone({ arguments: { keepBackupsDays: '30' } }))).toMatchObject({
    keptDays: 30,
    origin: { databaseName: 'shop', ownerName: 'owner', networkId: 'n', backups: REPORT },
  })
  expect(release(gone({}))).toMatchObject({ keptDays: 7 })
  expect(release(gone({ arguments: { keepBackupsDays: '0' } }))).toMatchObject({ keptDays: 0 })
  expect(release(gone({}, {})), 'without anything to restore').toMatchObject({ keptDays: 0 })
})
