import { describe, expect, test } from 'vitest'
import { defined } from '../../../domain/defined.ts'
import { NamespaceRights, withNamespaceRights } from '../../../kit/kube/namespace-rights.ts'
import { Lease, RoleBinding, Secret } from '../../../kit/kube/object.ts'
import { ApiError, type Store } from '../../../kit/kube/store.ts'
import { movableClock } from '../../apiserver/identity/harness.ts'

const TEXT = JSON.stringify([
  { start: 'acct-', clusterRole: 'cloud-accounts', serviceAccount: { name: 'cloud-apiserver', namespace: 'cloud' } },
  {
    start: 'acct-',
    clusterRole: 'cloud-namespaces',
    serviceAccount: { name: 'cloud-controllers', namespace: 'cloud' },
  },
  { start: 'node-', clusterRole: 'cloud-nodes', serviceAccount: { name: 'cloud-apiserver', namespace: 'cloud' } },
])

const refused = (message: string) => new ApiError({ code: 403, reason: 'Forbidden', message })
const LACKING = refused('secrets "a" is forbidden: User "x" cannot get resource "secrets" in API group ""')

/** A cluster that lets the process in `lag` attempts after its binding was made. */
function openCluster({
  lag = 0,
  known = [] as readonly string[],
  refusal = LACKING,
  bindFails = undefined as unknown,
} = {}) {
  const bindings = new Set(known)
  const made: string[] = []
  let attempts = 0
  let [waited, isBound] = [0, known.length > 0]
  const allowed = async <T>(answer: T): Promise<T> => {
    attempts += 1
    if (isBound && waited++ >= lag) return answer
    throw refusal
  }
  const store = {
    create: async (type: typeof RoleBinding, { metadata }: { metadata: { namespace: string; name: string } }) => {
      if (type.kind !== 'RoleBinding') return await allowed(metadata)
      if (bindFails !== undefined) throw bindFails
      isBound = true
      const key = `${metadata.namespace}/${metadata.name}`
      if (bindings.has(key)) throw new ApiError({ code: 409, reason: 'AlreadyExists', message: 'taken' })
      bindings.add(key)
      made.push(key)
      return metadata
    },
    get: () => allowed('found'),
    delete: () => allowed(undefined),
    patch: () => allowed('patched'),
  } as unknown as Store // what is asked of it here
  const guarded = withNamespaceRights(store, { rights: NamespaceRights.parse(TEXT), clock: movableClock() })
  return { guarded, made, attempts: () => attempts }
}
const key = { namespace: 'acct-1', name: 'a' }

describe('a process that is refused for lack of a right', () => {
  test('makes all bindings of such a namespace, and continues when they exist', async () => {
    const { guarded, made } = openCluster({ lag: 3 })
    expect(await guarded.get(Secret, key)).toBe('found')
    expect(made).toEqual(['acct-1/cloud-accounts', 'acct-1/cloud-namespaces'])
    expect(await guarded.patch(Secret, key, {})).toBe('patched')
    expect(made).toHaveLength(2)
  })
  test('waits where somebody else has just made them', async () => {
    const { guarded, made } = openCluster({ lag: 2, known: ['node-1/cloud-nodes'] })
    expect(await guarded.get(Lease, { namespace: 'node-1', name: 'heartbeat' })).toBe('found')
    expect(made).toEqual([])
  })
  test.each(['kube-system', 'cloud', 'accounts', undefined])('makes none in %s', async (namespace) => {
    const { guarded, made, attempts } = openCluster()
    const elsewhere = { name: 'a', ...defined({ namespace }) }
    await expect(guarded.get(Secret, elsewhere)).rejects.toBe(LACKING)
    expect([made, attempts()]).toEqual([[], 1])
  })
  test('gets the refusal in the end where the bindings do not help', async () => {
    const { guarded } = openCluster({ lag: 100 })
    await expect(guarded.get(Secret, key)).rejects.toBe(LACKING)
  })
})

test.each([
  ['a quota', refused('secrets "a" is forbidden: exceeded quota: svccloud')],
  ['a conflict', new ApiError({ code: 409, reason: 'Conflict', message: 'cannot get resource' })],
])('%s is no lack of a right', async (_what, refusal) => {
  const { guarded, made, attempts } = openCluster({ refusal })
  await expect(guarded.get(Secret, key)).rejects.toBe(refusal)
  expect([made, attempts()]).toEqual([[], 1])
})

describe.each([
  ['is not there', new ApiError({ code: 404, reason: 'NotFound', message: 'namespaces "acct-1" not found' })],
  [
    'is being deleted',
    new ApiError({ code: 403, reason: 'Forbidden', message: 'x', causes: [{ reason: 'NamespaceTerminating' }] }),
  ],
])('in a namespace that %s', (_what, bindFails) => {
  test('nothing is found, and what was deleted no longer exists', async () => {
    const { guarded } = openCluster({ bindFails })
    expect(await guarded.get(Secret, key)).toBeUndefined()
    await expect(guarded.delete(Secret, key)).resolves.toBeUndefined()
  })
  test('nothing can be made', async () => {
    const { guarded } = openCluster({ bindFails })
    await expect(guarded.create(Secret, { metadata: key, spec: undefined })).rejects.toBe(bindFails)
  })
})

test('without rights the store stays as it is', () => {
  const store = {} as Store // never asked
  expect(withNamespaceRights(store, { rights: NamespaceRights.parse(undefined), clock: movableClock() })).toBe(store)
  expect(NamespaceRights.safeParse('[{]').success).toBe(false)
  expect(NamespaceRights.safeParse('[{"start":""}]').success).toBe(false)
})
