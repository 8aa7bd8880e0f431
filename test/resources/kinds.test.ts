import { expect, test } from 'vitest'
import { ADMIN, openCore } from '../../embedded/kubernetes/core/core.ts'
import { memoryStorage } from '../../embedded/kubernetes/storage/memory.ts'
import { openClient } from '../../kit/kube/client.ts'
import { installCrds, readCrds, schemaOf } from '../../kit/kube/crd.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { silentLog } from '../../kit/sys/log.ts'
import { systemRandom } from '../../kit/sys/random.ts'
import type { Resource } from '../../resources/define.ts'
import { RESOURCES } from '../../resources/index.ts'
import { tryKindRules } from './kind-rules.ts'

/** Kinds that only controllers and agents write: their fields are explained where they are defined. */
const INTERNAL = ['Instance', 'Volume', 'NodeReport']
const forPeople = RESOURCES.filter(({ kind }) => !INTERNAL.includes(kind)).map(
  (resource) => [resource.kind, resource] as const,
)

interface Schema {
  readonly description?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
}

/** Paths of the fields that say nothing of themselves. */
const silent = ({ properties = {}, items }: Schema, path: string): string[] => [
  ...Object.entries(properties).flatMap(([name, field]) => [
    ...(field.description === undefined ? [`${path}.${name}`] : []),
    ...silent(field, `${path}.${name}`),
  ]),
  ...(items === undefined ? [] : silent(items, `${path}[]`)),
]

test.each(forPeople)('kubectl explains every field of %s', (_kind, { spec, status }: Resource) => {
  const schema: Schema = { properties: { spec: schemaOf(spec, 'spec'), status: schemaOf(status, 'status') } }
  expect(silent(schema, '')).toEqual([])
})

test.each(forPeople)('health and newest generation of %s can be told by tools', (_kind, { kind, status }: Resource) => {
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
    await installCrds(store, await readCrds('crds'), systemClock)
    await tryKindRules(store)
  } finally {
    await core.close()
  }
})
