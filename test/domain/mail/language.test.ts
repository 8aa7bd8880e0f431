import { expect, test } from 'vitest'
import { acceptedLanguage, languageOf } from '../../../domain/mail/language.ts'

test.each([
  ['de', 'de'],
  ['de-AT', 'de'],
  ['EN-us', 'en'],
  ['pseudo', undefined],
  ['', undefined],
  ['toString', undefined],
] as const)('the tag %j is of the language %s', (tag, language) => {
  expect(languageOf(tag)).toBe(language)
})

test.each([
  [undefined, undefined],
  ['', undefined],
  ['*', undefined],
  ['de', 'de'],
  ['fr, de;q=0.8, en;q=0.9', 'en'],
  ['de-CH,de;q=0.9,en;q=0.8', 'de'],
  ['en;q=0, de;q=0.1', 'de'],
  ['en;q=0', undefined],
  ['en;q=wrong;q=0.2, de;q=0.1', 'en'],
  [`${'fr,'.repeat(1_000)}de`, undefined],
] as const)('a browser that accepts %j gets %s', (header, language) => {
  expect(acceptedLanguage(header)).toBe(language)
})
