/** What the controller of dev clusters decides, situation by situation. */
import { expect, test } from 'vitest'
import { devClusterDocument } from '../../../../controllers/nouns/dev-cluster/machine.ts'
import type { DevClusterObject, Observed } from '../../../../controllers/nouns/dev-cluster/observed.ts'
import { plan } from '../../../../controllers/nouns/dev-cluster/plan.ts'
import {
  configurationFingerprint,
  type Machine,
  machineName,
} from '../../../../controllers/nouns/managed-machine/index.ts'
import { defined } from '../../../../domain/defined.ts'
import { DevCluster, type DevClusterStatus } from '../../../../resources/dev-cluster/index.ts'
import { Server } from '../../../../resources/server/index.ts'
import { STARTED } from '../managed-machine/started.ts'

const NOW = new Date('2026-01-01T12:10:00Z')
const UID = '6a31d3a0-3df6-4f5e-a2a1-5f0f2a4f8f11'
const ACCOUNT = '00000000-0000-4000-8000-000000000001'
const KEY = {
  kty: 'EC',
  crv: 'P-256',
  alg: 'ES256',
  use: 'sig',
  kid: 'k',
  x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
  y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
}

const clusterOf = (status: DevClusterStatus = {}, more: object = {}): DevClusterObject => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'DevCluster',
  metadata: { name: 'c1', namespace: `acct-${ACCOUNT}`, uid: UID, creationTimestamp: '2026-01-01T12:00:00Z', ...more },
  spec: DevCluster.spec.parse({
    zone: 'eu-1a',
    name: 'shop',
    plan: 'starter-2c-4g',
    version: '1.36',
    sshKeys: ['ssh-ed25519 AAAA me'],
  }),
  status,
})
const MACHINE: Machine = {
  ...STARTED,
  role: 'cluster',
  serverId: machineName({ uid: UID, type: 'dev_cluster' }, 'cluster'),
  serverUid: 's',
  plan: 'starter-2c-4g',
  createdAt: '2026-01-01T12:00:01Z',
  node: 'node-1',
  publicIpv6: '2001:db8::1',
  publicIpv6Prefix: '2001:db8::/64',
  publicMacAddress: '02:00:00:00:00:01',
}
const observedOf = (more: Partial<Observed> = {}): Observed => ({
  accountId: ACCOUNT,
  isClaimed: true,
  region: 'eu-1',
  networkCidr: undefined,
  issuerKey: KEY,
  machines: [],
  lost: [],
  isServerRemoved: false,
  requests: [],
  endedAdmins: [],
  ...more,
})
const ADMINS = ['1', '2'].map((number) => ({
  name: `svccloud-admin-${number}`,
  uid: `0b7f3c1e-5d0a-4f6b-9a57-00000000000${number}`,
}))
const READY = {
  isReady: true,
  isNodeReady: true,
  detail: '',
  version: 'v1.36.3',
  certificateAuthority: 'PEM',
  admins: ADMINS,
}

/** A server that runs what it was handed, and says that. */
function told(said: object | undefined, more: Partial<Machine> = {}): Observed {
  const observed = observedOf({ machines: [MACHINE] })
  const running = { generation: 1, fingerprint: configurationFingerprint(devClusterDocument(clusterOf(), observed)) }
  const report = { services: {}, ...defined({ devCluster: said }) } as Machine['report']
  const machine = { ...MACHINE, delivered: running, running, report, reportedAt: '2026-01-01T12:09:00.000Z', ...more }
  return observedOf({ machines: [machine] })
}
const statusOf = (cluster: DevClusterObject, observed: Observed, now = NOW) =>
  plan(cluster, observed, now).flatMap((action) => (action.do === 'status' ? [action.status] : []))[0]
const kinds = (cluster: DevClusterObject, observed: Observed, now = NOW) =>
  plan(cluster, observed, now).map((action) => (action.do === 'effect' ? action.name : action.do))

test('its name is claimed, then its server is made, then that gets its configuration', () => {
  expect(kinds(clusterOf(), observedOf({ isClaimed: false }))).toContain('claim')
  const [made] = plan(clusterOf(), observedOf(), NOW)
  expect(made).toMatchObject({
    do: 'ensure',
    type: Server,
    draft: {
      metadata: { name: expect.stringMatching(/^machine-dev-/) },
      spec: { hostname: 'shop', template: 'dev-cluster', managedBy: 'dev_cluster:c1', publicIpv4: false },
    },
  })
  expect(kinds(clusterOf(), observedOf({ machines: [MACHINE] }))).toContain('deliver')
})

test('it runs when its server says that its API and its node are ready, and keeps what that said first', () => {
  const waits = { isReady: false, isNodeReady: false, detail: 'its API is not ready' }
  expect(statusOf(clusterOf(), told(waits))).toMatchObject({ health: { apiServer: 'unhealthy', detail: waits.detail } })
  expect(statusOf(clusterOf(), told(waits))).not.toHaveProperty('isMade')
  const status = statusOf(clusterOf(), told(READY, { isHealthy: true }))
  expect(status).toMatchObject({
    isMade: true,
    version: 'v1.36.3+plain',
    certificateAuthority: 'PEM',
    admins: ADMINS,
    ipv6Address: '2001:db8::1',
    health: { apiServer: 'healthy', isNodeReady: true, detail: '' },
  })
  expect(status).not.toHaveProperty('isSimulated')
  const later = { ...READY, certificateAuthority: 'ANOTHER', admins: ADMINS.slice(1) }
  const known = clusterOf({ isMade: true, certificateAuthority: 'PEM', admins: ADMINS })
  expect(statusOf(known, told(later))).toMatchObject({ certificateAuthority: 'PEM', admins: ADMINS.slice(1) })
})

test('it does not run before its node is ready, and keeps running when that is not later', () => {
  const joining = { ...READY, isNodeReady: false, detail: 'its node is not ready: no network' }
  const health = { apiServer: 'healthy', isNodeReady: false, detail: joining.detail }
  expect(statusOf(clusterOf(), told(joining))).toMatchObject({ certificateAuthority: 'PEM', admins: ADMINS, health })
  expect(statusOf(clusterOf(), told(joining))).not.toHaveProperty('isMade')
  expect(statusOf(clusterOf({ isMade: true }), told(joining))).toMatchObject({ isMade: true, health })
  const late = new Date('2026-01-01T12:30:00Z')
  const reason = expect.stringMatching(/did not come up within 30 minutes: its node is not ready: no network$/)
  expect(statusOf(clusterOf(), told(joining), late)).toMatchObject({ failureReason: reason })
})

test('an earlier configuration is no sign of the current one', () => {
  const old = told(READY, { running: { generation: 1, fingerprint: 'old' }, isHealthy: true })
  expect(statusOf(clusterOf(), old)).not.toHaveProperty('isMade')
})

test('what does not come up in 30 minutes is in error, and says what it waited for', () => {
  const late = new Date('2026-01-01T12:30:00Z')
  const waits = { isReady: false, isNodeReady: false, detail: 'etcd does not run' }
  const reason = expect.stringMatching(/within 30 minutes: etcd does not run$/)
  expect(statusOf(clusterOf(), told(waits), late)).toMatchObject({ failureReason: reason })
  expect(statusOf(clusterOf({ isMade: true }), told(waits), late)).not.toHaveProperty('failureReason')
  // Nothing but its deletion ends that.
  const kept = clusterOf({ failureReason: 'It failed.' })
  expect(kinds(kept, told(READY))).toEqual(['status', 'wait'])
})

test.each([
  ['is being deleted', { isMade: true }, [{ ...MACHINE, isDeleting: true }], /deleted/],
  ['it is lost', { isMade: true }, [{ ...MACHINE, state: 'error', stateDetail: 'its disk is lost' }], /disk is lost/],
  ['it could not be made', {}, [{ ...MACHINE, state: 'error', stateDetail: 'no room' }], /could not be made: no room/],
] as const)('a cluster whose server %s is in error', (_why, status, machines, reason) => {
  const cluster = clusterOf({ serverId: MACHINE.serverId, ...status })
  expect(statusOf(cluster, observedOf({ machines: [...machines] as Machine[] }))).toMatchObject({
    failureReason: expect.stringMatching(reason),
  })
})

test('a missing server is shown as lost, and only its deletion ends the cluster', () => {
  const cluster = clusterOf({ serverId: MACHINE.serverId, isMade: true, admins: ADMINS })
  const waits = statusOf(cluster, observedOf())
  expect(waits).toEqual({
    health: { apiServer: 'unknown', isNodeReady: false, detail: expect.stringMatching(/missing/) },
  })
  expect(kinds(cluster, observedOf())).toEqual(['status', 'wait'])
  expect(statusOf(cluster, told(READY))).toMatchObject({ health: { apiServer: 'healthy' } })
  const removed = { failureReason: expect.stringMatching(/was deleted/) }
  expect(statusOf(cluster, observedOf({ isServerRemoved: true }))).toMatchObject(removed)
  // A Kubernetes of before its server was made: it is not made a second time.
  expect(kinds(clusterOf(), observedOf({ lost: [MACHINE.serverId] }))).toEqual(['status', 'wait'])
  expect(statusOf(clusterOf(), observedOf({ isServerRemoved: true }))).toMatchObject(removed)
})

test('its server removes the accounts of former holders, and keeps serving', () => {
  const [first, second] = ADMINS.map(({ uid }) => uid)
  const cluster = clusterOf({ isMade: true, serverId: MACHINE.serverId, admins: ADMINS })
  const over = (endedAdmins: readonly string[]): Observed => ({ ...told(READY), endedAdmins })
  const document = (observed: Observed) => devClusterDocument(cluster, observed)?.devCluster
  expect(document(over([]))).not.toHaveProperty('endedAdmins')
  // Another one has gone already: it is not said for ever.
  expect(document(over([second ?? '', UID]))?.endedAdmins).toEqual([second])
  expect(kinds(cluster, over([first ?? '']))).toContain('deliver')
  expect(statusOf(cluster, over([first ?? '']))).toMatchObject({ health: { apiServer: 'healthy' } })
  // Also in one that is in error, as long as anything of it is left.
  const failed = clusterOf({ ...cluster.status, failureReason: 'Its server is lost.' })
  expect(kinds(failed, over([first ?? '']))).toContain('deliver')
  expect(statusOf(failed, observedOf({ isServerRemoved: true }))).toEqual({ admins: [] })
  expect(statusOf(failed, observedOf())).toEqual({})
})

test('one that its owner has stopped is none that is lost', () => {
  const stopped = told(READY, { state: 'stopped' })
  const cluster = clusterOf({ isMade: true, serverId: MACHINE.serverId })
  expect(statusOf(cluster, stopped)).toMatchObject({
    health: { apiServer: 'unhealthy', detail: 'Its server is stopped' },
  })
  expect(kinds(cluster, stopped)).not.toContain('ensure')
})

test('its server is deleted first, in any state, then the claims', () => {
  const going = clusterOf({ isMade: true }, { deletionTimestamp: '2026-01-01T12:09:00Z' })
  expect(kinds(going, observedOf({ machines: [MACHINE] }))).toEqual(['remove', 'status', 'wait'])
  expect(kinds(going, observedOf({ machines: [{ ...MACHINE, isDeleting: true }] }))).toEqual(['status', 'wait'])
  expect(kinds(going, observedOf())).toEqual(['release', 'finalized'])
})
