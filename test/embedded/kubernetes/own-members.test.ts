/** Names that every JavaScript object inherits are ordinary names here. */
import { expect, test } from 'vitest'
import { matchesLabels } from '../../../embedded/kubernetes/access/rbac.ts'
import { isEqual } from '../../../embedded/kubernetes/core/json.ts'
import { parseOptions } from '../../../embedded/options.ts'
import { patchBetween } from '../../../kit/reconcile/interpret.ts'
import { openWidgetWorld, widget, WIDGETS } from './world.ts'

const NAMES = ['constructor', 'toString', 'hasOwnProperty']

test.each(NAMES)('a member called %s makes a difference', (name) => {
  expect(isEqual({}, { [name]: 'x' })).toBe(false)
  expect(isEqual({ [name]: 'x' }, {})).toBe(false)
  expect(isEqual({ [name]: 'x' }, { [name]: 'x' })).toBe(true)
})

test.each(NAMES)('objects without the label %s are not selected by it', async (name) => {
  const world = await openWidgetWorld()
  await world.post(WIDGETS, widget('without'))
  await world.post(WIDGETS, widget('with', {}, { labels: { [name]: 'x' } }))
  const selected = async (selector: string) =>
    (await world.get(`${WIDGETS}?labelSelector=${encodeURIComponent(selector)}`)).body.items.map(
      ({ metadata }: { metadata: { name: string } }) => metadata.name,
    )
  expect(await selected(name)).toEqual(['with'])
  expect(await selected(`${name} in (x)`)).toEqual(['with'])
  expect(await selected(`!${name}`)).toEqual(['without'])
  expect(matchesLabels({ matchExpressions: [{ key: name, operator: 'Exists' }] }, {})).toBe(false)
  expect(matchesLabels({ matchExpressions: [{ key: name, operator: 'DoesNotExist' }] }, {})).toBe(true)
})

test.each(NAMES)('a label called %s is stored by a change that adds nothing else', async (name) => {
  const world = await openWidgetWorld()
  await world.post(WIDGETS, widget('a', {}, { labels: { other: 'x' } }))
  await world.merge(`${WIDGETS}/a`, { metadata: { labels: { [name]: 'x' } } })
  expect((await world.get(`${WIDGETS}/a`)).body.metadata.labels).toEqual({ other: 'x', [name]: 'x' })
})

test('a removed status member is removed, with any name', () => {
  expect(patchBetween({ constructor: 1, kept: 1 }, { kept: 1 })).toEqual({ constructor: null })
})

test('a switch takes the words that it names', () => {
  expect(() => parseOptions(['--ephemeral=constructor'], {})).toThrow('must be true or false')
})
