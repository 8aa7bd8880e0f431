import { expect, test } from 'vitest'
import { createTouchLog } from '../../../apiserver/feed/log.ts'

const server = (id: string, isOwn = false) => ({ type: 'server', id, isOwn })
const idsOf = (touched: readonly { readonly id: string }[] | undefined) => touched?.map(({ id }) => id)

test('knows what was touched after a version, each item once, and of that namespace only', () => {
  const log = createTouchLog({ namespaceMaximum: 10, maximum: 100 })
  log.note('a', server('one'), '8')
  log.note('a', server('two'), '9')
  log.note('b', server('foreign'), '10')
  log.note('a', server('one'), '11')
  expect(idsOf(log.since('a', '8'))).toEqual(['two', 'one'])
  expect(idsOf(log.since('a', '9'))).toEqual(['one'])
  expect(idsOf(log.since('a', '11'))).toEqual([])
  expect(idsOf(log.since('c', '1'))).toEqual([])
})

test('an item whose object was touched stays so, whatever touches it later', () => {
  const log = createTouchLog({ namespaceMaximum: 10, maximum: 100 })
  log.note('a', server('one', true), '8')
  log.note('a', server('one'), '9')
  expect(log.since('a', '8')).toMatchObject([{ isOwn: true }])
})

test('does not know what came before something that shows everywhere', () => {
  const log = createTouchLog({ namespaceMaximum: 10, maximum: 100 })
  log.raise('9')
  log.raise('7')
  expect([log.since('a', '8'), log.since('a', '9')]).toEqual([undefined, []])
})

test('an account with many changes forgets its oldest, and no other account does', () => {
  const log = createTouchLog({ namespaceMaximum: 2, maximum: 100 })
  log.note('b', server('other'), '7')
  for (const version of [8, 9, 10]) log.note('a', server(`s${version}`), String(version))
  expect(log.since('a', '7')).toBeUndefined()
  expect(idsOf(log.since('a', '8'))).toEqual(['s9', 's10'])
  expect(idsOf(log.since('b', '6'))).toEqual(['other'])
})

test('the namespace that was touched first is forgotten first; cursors after its last change stay valid', () => {
  const log = createTouchLog({ namespaceMaximum: 10, maximum: 3 })
  log.note('a', server('one'), '8')
  log.note('a', server('two'), '9')
  log.note('b', server('three'), '10')
  log.note('b', server('four'), '11')
  expect(log.since('a', '8')).toBeUndefined()
  expect(idsOf(log.since('a', '9'))).toEqual([])
  expect(idsOf(log.since('b', '9'))).toEqual(['three', 'four'])
})
