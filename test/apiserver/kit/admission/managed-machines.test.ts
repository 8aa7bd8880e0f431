/** What people cannot do with managed machines past the API. */
import { expect, it } from 'vitest'
import { requireNoMachine } from '../../../../apiserver/kit/admission/managed-machines.ts'
import type { AdmissionRequest } from '../../../../apiserver/kit/admission/review.ts'
import { refusalOf } from '../../../db/zones.ts'

const ID = 'machine-1'
const request = (
  operation: AdmissionRequest['operation'],
  plural: string,
  name: string,
  spec: Record<string, unknown> = {},
): AdmissionRequest => {
  const object = {
    apiVersion: 'svccloud.dev/v1alpha1',
    kind: 'Any',
    metadata: { name, deletionTimestamp: undefined },
    spec,
  }
  return {
    uid: 'u',
    operation,
    resource: { group: 'svccloud.dev', resource: plural },
    subResource: '',
    namespace: 'acct-1',
    userInfo: { username: 'ada' },
    ...(operation === 'DELETE' ? { oldObject: object } : { object }),
  }
}

it.each<[string, AdmissionRequest, string | undefined]>([
  ['a server of their own', request('CREATE', 'servers', 'web', { hostname: ID }), undefined],
  ['a server with the name of a machine', request('CREATE', 'servers', ID), '403'],
  ['a storage with the name of a machine', request('CREATE', 'storages', ID), '403'],
  ['a change of a machine', request('UPDATE', 'servers', ID), '409 in_use'],
  ['the deletion of a machine', request('DELETE', 'servers', ID), '409 in_use'],
  ['the deletion of its disk', request('DELETE', 'storages', ID), '409 in_use'],
  ['a disk for a machine', request('CREATE', 'storages', 'data', { serverId: ID }), '409 in_use'],
  ['a snapshot of its disk', request('CREATE', 'snapshots', 's', { storageId: ID }), '409 in_use'],
  ['an image of its disk', request('CREATE', 'customimages', 'i', { source: { storageId: ID } }), '409 in_use'],
  ['an edge that is called so', request('DELETE', 'edges', ID), undefined],
])('admits or refuses %s', async (_what, review, expected) => {
  const asked = Promise.resolve().then(() => requireNoMachine(() => 'edge:e', review))
  expect(await refusalOf(asked)).toBe(expected)
})

it('names the owner', async () => {
  const refused = Promise.resolve().then(() => requireNoMachine(() => 'edge:e', request('DELETE', 'servers', ID)))
  await expect(refused).rejects.toMatchObject({ members: { resource: { type: 'edge', id: 'e' } } })
})

it('says what it is where nobody knows the owner', async () => {
  const refused = Promise.resolve().then(() => requireNoMachine(() => undefined, request('DELETE', 'storages', ID)))
  await expect(refused).rejects.toThrow(/^It is part of a managed resource: change or delete that\.$/)
})
