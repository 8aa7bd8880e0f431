/** Snapshots that a host has lost come back from object storage, and so does a host that has lost everything. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { SnapshotPlace } from '../../../integrations/control-planes/control.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { until } from '../../eventually.ts'
import { startHostileS3 } from '../../kit/chunks/hostile-s3.ts'
import { adminOf, type Hosted, isWhole, newDesired, openHosted, untilState } from './hosted.ts'

const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps'
const KEPT = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kept' } }
const SEALED = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'sealed' }, stringData: { password: 'x' } }

let hosted: Hosted
const one = newDesired()
beforeAll(async () => {
  hosted = await openHosted({ memoryBytes: 1_400 * 1024 ** 2 })
  await hosted.host.ensure(one)
})
afterAll(() => hosted.end())

test('a restore brings back from object storage what the host has lost of a snapshot', async () => {
  const store = await startHostileS3('clusters')
  const place = { url: `${store.url.origin}/clusters`, authority: null, accessKeyId: 'id', secretAccessKey: 's' }
  const [snapshotId, restoreId] = [newUuid(systemRandom), newUuid(systemRandom)]
  const admin = await adminOf(hosted, one.id)
  expect((await admin.send('POST', CONFIG_MAPS, KEPT)).status).toBe(201)
  expect((await admin.send('POST', '/api/v1/namespaces/default/secrets', SEALED)).status).toBe(201)
  // One that was taken before there was a store.
  await hosted.host.snapshot(one.id, newUuid(systemRandom))
  await until(
    'the first snapshot',
    () => hosted.host.snapshots(one.id),
    (snapshots) => snapshots[0]?.phase === 'done',
  )
  try {
    await hosted.host.keepSnapshotsIn(one.id, { ...place, sealingKey: 'b'.repeat(64) })
    await hosted.host.snapshot(one.id, snapshotId)
    await until(
      'it to be in the store',
      () => hosted.host.snapshots(one.id),
      (snapshots) => snapshots.length > 1 && snapshots.every(({ isStored }) => isStored),
    )
    await admin.send('DELETE', `${CONFIG_MAPS}/kept`)
    await rm(join(hosted.folder, one.id, 'snapshots', `${snapshotId}.db`))
    store.fault = () => 'error'
    await hosted.host.restore(one.id, restoreId, snapshotId)
    await untilState(hosted, one.id, ({ detail }) => detail.includes('500'))
    // What runs goes on meanwhile.
    expect((await admin.send('GET', `${CONFIG_MAPS}/kept`)).status).toBe(404)
    store.fault = undefined
    await untilState(hosted, one.id, (state) => isWhole(state) && state.restoreId === restoreId)
    expect((await admin.send('GET', `${CONFIG_MAPS}/kept`)).status).toBe(200)
    await loseAndRecover(place, snapshotId)
  } finally {
    await store.close()
  }
})

/** All that the host had of it is lost. */
async function loseAndRecover(place: Omit<SnapshotPlace, 'sealingKey'>, snapshotId: string): Promise<void> {
  const before = await hosted.host.get(one.id)
  await hosted.reopen(() => rm(join(hosted.folder, one.id), { recursive: true }))
  expect(await hosted.host.get(one.id)).toBeUndefined()
  const restoreId = newUuid(systemRandom)
  const sealed = { ...place, sealingKey: 'b'.repeat(64) }
  await expect(hosted.host.recover(one, sealed, restoreId, newUuid(systemRandom), null)).rejects.toThrow('snapshot')
  const port = Number(new URL(before?.endpoint ?? '').port)
  for (const _said of ['once', 'again']) await hosted.host.recover(one, sealed, restoreId, snapshotId, port)
  const after = await untilState(hosted, one.id, (state) => isWhole(state) && state.restoreId === restoreId)
  expect(after.certificateAuthority).toBe(before?.certificateAuthority)
  // Kubeconfigs go on.
  expect(after.endpoint).toBe(before?.endpoint)
  const admin = await adminOf(hosted, one.id)
  expect((await admin.send('GET', `${CONFIG_MAPS}/kept`)).status).toBe(200)
  // What was sealed in etcd is read with the key of before.
  expect((await admin.send('GET', '/api/v1/namespaces/default/secrets/sealed')).status).toBe(200)
}
