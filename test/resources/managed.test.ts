/** Registrations of nouns that programs keep as they are written down: nothing of a noun is left unsaid. */
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { crds } from '../../controllers/kit/crds.ts'
import { MANAGED, RESOURCES, ROUTES } from '../../resources/index.ts'
import { type ManagedNoun, type ManagedChange, setBy } from '../../resources/kit/managed.ts'

const fieldsOf = (schema: z.ZodType | null): Readonly<Record<string, z.ZodType>> =>
  schema instanceof z.ZodObject ? (schema.shape as Readonly<Record<string, z.ZodType>>) : {} // a shape is of schemas
const isRequired = (schema: z.ZodType): boolean => !schema.safeParse(undefined).success

const changedIn = ({ changes }: ManagedNoun): readonly string[] =>
  changes.flatMap((change) => Object.keys(setBy(change)))
const createdIn = ({ routes }: ManagedNoun): readonly string[] => Object.keys(fieldsOf(routes.create.body))

/** What is wrong with a registration, in words; the rules are below. */
function faultsOf(noun: ManagedNoun): readonly string[] {
  const { view, routes, changes, fields = {}, facts, moments, names, removeNeeds = {} } = noun
  const shown = Object.keys(view.shape)
  const created = createdIn(noun)
  const wishes = new Set([...created, ...changedIn(noun)])
  const kinds = (field: string) => [
    ...(wishes.has(field) ? ['a wish'] : []),
    ...(facts.includes(field) ? ['a fact'] : []),
    ...(moments.includes(field) ? ['a moment'] : []),
  ]
  const insteadOf = new Map(Object.entries(fields).map(([name, { creates }]) => [creates?.field, name]))
  return [
    ...shown
      .filter((field) => kinds(field).length !== 1)
      .map((field) => `${field} is ${kinds(field).join(' and ') || 'nothing'}`),
    ...created
      .filter((field) => !shown.includes(field) && fields[field]?.shows === undefined && !insteadOf.has(field))
      .filter((field) => !changes.some((change) => isReadApart(change, field)))
      .map((field) => `${field} of the creation is shown nowhere`),
    ...[...names, ...facts, ...moments]
      .filter((field) => !shown.includes(field))
      .map((field) => `${field} is not shown`),
    ...Object.keys(fields)
      .filter((field) => !wishes.has(field))
      .map((field) => `${field} is no wish`),
    ...Object.keys(removeNeeds)
      .filter((field) => !wishes.has(field))
      .map((field) => `${field} is no wish`),
    ...Object.values(fields).flatMap(({ creates }) =>
      creates === undefined || created.includes(creates.field) ? [] : [`${creates.field} is not in the creation`],
    ),
    ...Object.values(fields).flatMap(({ refers }) =>
      refers === undefined || NOUNS.has(refers) ? [] : [`${refers} is no noun`],
    ),
    ...changes.flatMap((change) => changeFaults(noun, change)),
    ...[routes.list, routes.create, routes.read, routes.remove].flatMap(({ id }) =>
      IDS.has(id) ? [] : [`${id} is gone`],
    ),
  ]
}
/** Members of lists and parts with a route of their own are read there. */
const isReadApart = (change: ManagedChange, field: string): boolean =>
  'each' in change ? change.each === field : 'readBy' in change && change.readBy !== undefined && field in setBy(change)

function changeFaults({ noun, view }: ManagedNoun, change: ManagedChange): readonly string[] {
  if ('each' in change) {
    const member = fieldsOf(change.add.body)
    return change.key in member ? [] : [`${change.add.id} does not take ${change.key}`]
  }
  if ('when' in change) return []
  const { by, on, moves = [] } = change
  const body = fieldsOf(by.body)
  const sent = Object.values(setBy(change))
  return [
    ...sent.filter((field) => field !== '*' && !(field in body)).map((field) => `${by.id} does not take ${field}`),
    ...(sent.includes('*') ? [] : Object.keys(body))
      .filter((field) => isRequired(body[field] ?? z.unknown()) && !sent.includes(field))
      .map((field) => `${by.id} needs ${field}`),
    ...[...moves, ...(on === undefined ? [] : [on])]
      .filter((field) => !(field in view.shape))
      .map((field) => `${noun} does not show ${field}`),
  ]
}

const IDS = new Set(ROUTES.map(({ id }) => id))
/** Whatever a route reads by its id. */
const NOUNS = new Set(ROUTES.flatMap(({ id }) => (id.startsWith('get_') ? [id.slice('get_'.length)] : [])))

describe.each(MANAGED.map((noun) => [noun.noun, noun] as const))('%s', (_name, noun) => {
  test('says of each field what it is, and changes it as its routes do', () => {
    expect(faultsOf(noun)).toEqual([])
  })

  test('is what its routes create and read', () => {
    const [answer] = Object.entries(noun.routes.read.answers).flatMap(([status, schema]) =>
      status === '200' ? [schema] : [],
    )
    expect(fieldsOf(answer ?? null)[noun.noun]).toBe(noun.view)
  })

  test('is changed in place by every change of it that sets a field, or says that it is replaced', () => {
    const [patch] = ROUTES.filter(({ id }) => id === `update_${noun.noun}`)
    expect(patch && Object.keys(fieldsOf(patch.body)).filter((field) => !changedIn(noun).includes(field))).toEqual([])
  })
})

/** What kubectl may change and REST may not, and why. */
const ONLY_BY_KUBECTL: readonly string[] = ['server sshKeys'] // a rebuild by kubectl takes other keys

test('what a program replaces is what kubectl may not change', () => {
  const differing = MANAGED.flatMap((noun) => {
    const kind = RESOURCES.find(({ singular }) => singular === noun.noun.replaceAll('_', ''))
    const spec = Object.keys(fieldsOf(kind?.spec ?? null))
    const text = JSON.stringify(crds().find(({ metadata }) => metadata.name.startsWith(`${kind?.plural}.`)) ?? {})
    return [...createdIn(noun), ...changedIn(noun)]
      .map((name) => [name, name.replaceAll(/_([a-z0-9])/g, (_all, letter: string) => letter.toUpperCase())] as const)
      .filter(([name, field]) => {
        const isReplaced = !changedIn(noun).includes(name)
        // a rule with a condition ends with it
        const isFixed = text.includes(`"${field} cannot be changed${isReplaced ? '' : '"'}`)
        return spec.includes(field) && isFixed !== isReplaced
      })
      .map(([, field]) => `${noun.noun} ${field}`)
  })
  expect(differing).toEqual(ONLY_BY_KUBECTL)
})

describe('a registration', () => {
  const [key] = MANAGED.filter(({ noun }) => noun === 'ssh_key')
  if (key === undefined) throw new Error('there are no SSH keys')

  test.each<readonly [string, Partial<ManagedNoun>, string]>([
    ['that forgets a fact', { facts: ['id', 'created_at'] }, 'fingerprint is nothing'],
    ['that says a field twice', { moments: ['id'] }, 'id is a fact and a moment'],
    ['with a wish as a fact', { facts: [...key.facts, 'name'] }, 'name is a wish and a fact'],
    ['of a field that is gone', { moments: ['gone'] }, 'gone is not shown'],
    ['with a rule for no field', { fields: { gone: {} } }, 'gone is no wish'],
    ['that refers to nothing', { fields: { name: { refers: 'gone' } } }, 'gone is no noun'],
    [
      'that sends what is not taken',
      { changes: [{ by: key.routes.create, sets: ['fingerprint'] }] },
      'create_ssh_key does not take fingerprint',
    ],
    [
      'that leaves out what is needed',
      { changes: [{ by: key.routes.create, sets: ['name'] }] },
      'create_ssh_key needs public_key',
    ],
  ])('%s is found', (_what, more, fault) => {
    expect(faultsOf({ ...key, ...more })).toContain(fault)
  })
})
