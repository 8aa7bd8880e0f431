/** What the controller of object storage decides, fact by fact. */
import { describe, expect, test } from 'vitest'
import { type Observed, plan } from '../../../controllers/object-storage/plan.ts'
import type { ObjectStorageRow } from '../../../db/object-storage/index.ts'
import type { TenantState } from '../../../kit/object-storage/control.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { ObjectStorageSpec, ObjectStorageStatus } from '../../../resources/object-storage/index.ts'

const FACTS = {
  accessKeyId: 'KEY',
  bucketPrefix: 'abcd-',
  quotaBytes: 1_000,
  isSuspended: false,
  isFrozen: false,
  secretFingerprint: 'f',
}
const TENANT: TenantState = {
  ...FACTS,
  bucketCount: 1,
  usedBytes: 10,
  objectCount: 2,
  measuredAt: '2026-01-01T00:00:00.000Z',
}
const ROW: ObjectStorageRow = {
  id: 'mine',
  accountId: 'a',
  zone: 'z',
  accessKeyId: 'KEY',
  sealedSecret: '',
  bucketPrefix: 'abcd-',
  backend: 'svc-s3-single',
  usedBytes: 10,
  objectCount: 2,
  usageMeasuredAt: new Date(TENANT.measuredAt),
  generation: 1,
  createdAt: new Date(0),
}
const SERVED: Observed = {
  accountId: 'a',
  isZone: true,
  row: ROW,
  endpoint: 'https://localhost:9000',
  tenant: TENANT,
  wanted: FACTS,
  requests: [],
}
const OBJECT: KubeObject<ObjectStorageSpec, ObjectStorageStatus> = {
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'ObjectStorage',
  metadata: { name: 'mine', namespace: 'acct-a', generation: 1 },
  spec: { zone: 'z' },
}
const GOING = { ...OBJECT, metadata: { ...OBJECT.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } }

const effectsOf = (observed: Partial<Observed>, object = OBJECT) =>
  plan(object, { ...SERVED, ...observed }).flatMap((action) => (action.do === 'effect' ? [action.name] : []))
const reasonOf = (observed: Partial<Observed>, object = OBJECT) =>
  plan(object, { ...SERVED, ...observed }).flatMap((action) =>
    action.do === 'status' ? [action.conditions?.find(({ type }) => type === 'Ready')?.reason] : [],
  )[0]

describe('object storage', () => {
  test.each<[string, Partial<Observed>, readonly string[], string | undefined]>([
    ['that is served is left alone', {}, [], 'Served'],
    ['without an account is nobody’s', { accountId: undefined }, [], 'NoAccount'],
    ['in no zone waits for one', { isZone: false }, [], 'NoZone'],
    ['without a row gets one', { row: undefined }, ['open'], undefined],
    ['without a row where nothing serves it waits', { row: undefined, obstacle: 'no engine' }, [], 'NotOffered'],
    ['that nothing serves says why', { obstacle: 'no engine' }, [], 'NotOffered'],
    ['that the store does not know is told', { tenant: undefined }, ['bringUp'], undefined],
    [
      'whose store keeps it apart without a prefix is left alone',
      { tenant: { ...TENANT, bucketPrefix: undefined } },
      [],
      'Served',
    ],
    ['with another secret is told', { wanted: { ...FACTS, secretFingerprint: 'g' } }, ['bringUp'], undefined],
    ['with another quota is told', { wanted: { ...FACTS, quotaBytes: 5 } }, ['bringUp'], undefined],
    ['of a suspended account is told', { wanted: { ...FACTS, isSuspended: true } }, ['bringUp'], undefined],
    ['that was frozen and is not any more is told', { tenant: { ...TENANT, isFrozen: true } }, ['bringUp'], undefined],
    [
      'that is suspended there says so',
      { tenant: { ...TENANT, isSuspended: true }, wanted: { ...FACTS, isSuspended: true } },
      [],
      'Suspended',
    ],
    ['that holds more is written down', { tenant: { ...TENANT, usedBytes: 11 } }, ['record'], 'Served'],
  ])('%s', (_what, observed, effects, reason) => {
    expect([effectsOf(observed), reasonOf(observed)]).toEqual([effects, reason])
  })

  test.each<[string, Partial<Observed>, readonly string[], string | undefined]>([
    ['has gone without a row', { row: undefined }, [], undefined],
    ['stays while it has buckets', {}, [], 'InUse'],
    ['stays while nobody can look into it', { obstacle: 'no engine', tenant: undefined }, [], 'NotOffered'],
    ['goes when it is empty', { tenant: { ...TENANT, bucketCount: 0 } }, ['remove'], undefined],
    ['goes when the store does not know it', { tenant: undefined }, ['remove'], undefined],
  ])('that is deleted %s', (_what, observed, effects, reason) => {
    expect([effectsOf(observed, GOING), reasonOf(observed, GOING)]).toEqual([effects, reason])
  })

  test('of a gateway has no prefix in its status', () => {
    const [status] = plan(OBJECT, { ...SERVED, row: { ...ROW, backend: 'rgw' } }).flatMap((action) =>
      action.do === 'status' ? [action.status] : [],
    )
    expect(status).toMatchObject({ backend: 'rgw', bucketPrefix: undefined })
  })

  test('that is deleted and has no row is let go', () =>
    expect(plan(GOING, { ...SERVED, row: undefined })).toEqual([{ do: 'finalized' }]))
})
