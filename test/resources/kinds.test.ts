import { expect, test } from 'vitest'
import { ADMIN, openCore } from '../../embedded/kubernetes/core/core.ts'
import { memoryStorage } from '../../embedded/kubernetes/storage/memory.ts'
import { openClient } from '../../kit/kube/client.ts'
import { installCrds, schemaOf } from '../../kit/kube/crd.ts'
import { crds } from '../../controllers/kit/crds.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { silentLog } from '../../kit/sys/log.ts'
import { systemRandom } from '../../kit/sys/random.ts'
import { finalizerOf, type Resource } from '../../resources/kit/define.ts'
import { RESOURCES } from '../../resources/index.ts'
import { ServerGroup } from '../../resources/server-group/index.ts'
import { tryKindRules } from './kind-rules.ts'

const kinds = RESOURCES.map((resource) => [resource.kind, resource] as const)

interface Schema {
  readonly description?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly additionalProperties?: Schema | boolean
}

/** Paths of the fields without a description. */
const undescribed = ({ properties = {}, items, additionalProperties }: Schema, path: string): string[] => [
  ...Object.entries(properties).flatMap(([name, field]) => [
    ...(field.description === undefined ? [`${path}.${name}`] : []),
    ...undescribed(field, `${path}.${name}`),
  ]),
  ...(items === undefined ? [] : undescribed(items, `${path}[]`)),
  ...(typeof additionalProperties === 'object' ? undescribed(additionalProperties, `${path}.*`) : []),
]

test.each(kinds)('kubectl explains %s and every field of it', (_kind, { description, spec, status }: Resource) => {
  const schema: Schema = { properties: { spec: schemaOf(spec, 'spec'), status: schemaOf(status, 'status') } }
  expect(description).not.toBe('')
  expect(undescribed(schema, '')).toEqual([])
})

/** Stored objects have it: under another name their controllers would never release them. */
test('the finalizer of a kind is its name', () => expect(finalizerOf(ServerGroup)).toBe('svccloud.dev/server-group'))

test('every kind has distinct short names', () => {
  expect(RESOURCES.filter(({ shortNames }) => shortNames.length === 0).map(({ kind }) => kind)).toEqual([])
  const names = RESOURCES.flatMap(({ shortNames, singular, plural }) => [...shortNames, singular, plural])
  expect(new Set(names).size).toBe(names.length)
})

/** A NodeReport has no health: its age is that of the Lease beside it. */
const judged = kinds.filter(([kind]) => kind !== 'NodeReport')

test.each(judged)('tools can read health and newest generation of %s', (_kind, { kind, status }: Resource) => {
  const { properties = {} } = schemaOf(status, 'status') as Schema
  expect(Object.keys(properties)).toEqual(
    expect.arrayContaining(kind === 'Operation' ? ['observedGeneration'] : ['observedGeneration', 'conditions']),
  )
})

test('the embedded API server keeps the rules of the kinds', async () => {
  const core = await openCore({ clock: systemClock, random: systemRandom, log: silentLog, storage: memoryStorage() })
  const store = openClient({
    transport: (request) => core.handle(request, ADMIN),
    fieldManager: 'tests',
    clock: systemClock,
    random: systemRandom,
  })
  try {
    await installCrds(store, crds(), systemClock)
    await tryKindRules(store)
  } finally {
    await core.close()
  }
})
