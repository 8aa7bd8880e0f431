import { expect, it } from 'vitest'
import { participlesOf } from '../../tools/names.ts'

const namesIn = (source: string) => participlesOf('domain/x.ts', source).map(({ name }) => name)

it.each([
  ['const made = 1', ['made']],
  ['let [kept, ...taken] = list', ['kept', 'taken']],
  ['const { rows: given = [], other } = answer', ['given']],
  ['function told(seen: number, { asked }: Parts) {}', ['told', 'seen', 'asked']],
  ['interface Kept { readonly gone: string; said(): void }', ['Kept', 'gone', 'said']],
  ['type Taken = string', ['Taken']],
  ['class Pool { #given = 1; brought() {} }', ['given', 'brought']],
  ['list.map((meant) => meant)', ['meant']],
  ['const KEPT = []', ['KEPT']],
  ['interface Listed {}', ['Listed']],
  ['export type Found = string', ['Found']],
])('%s declares participles', (source, names) => expect(namesIn(source)).toEqual(names))

it.each([
  'const result = { asked: 1, given: 2 }', // words of others
  'const { given: parameters } = answer.kept',
  'const isMade = status.made, keptDays = 1, gonePlaces = 2',
  "const text = 'made' // kept",
  'interface ListedObject {} interface Observed {} type Feed = string',
  'class Refused extends Error {}',
])('%s declares none', (source) => expect(namesIn(source)).toEqual([]))
