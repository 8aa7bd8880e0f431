import { expect, test } from 'vitest'
import { acceptPassword } from '../../../domain/identity/password.ts'

const accepts = (password: string) => acceptPassword(password, 'ada@example.com')

test.each([
  ['a sentence', 'a long walk on the beach'],
  ['twelve characters', 'xK9#mP2$vL5q'],
  ['other scripts', 'пароль для входа сюда'],
  ['emoji count as one each', '🐎🔋📎🧷🐎🔋📎🧷🌊🌋🏔🗻'],
  ['five different characters', 'zqxwvvwxqzqz'],
  ['128 characters', 'correct horse '.repeat(9) + 'xy'],
])('%s is accepted', (_what, password) => expect(accepts(password)).toBe(password.normalize('NFKC')))

test.each([
  ['eleven characters', 'xK9#mP2$vL5'],
  ['129 characters', 'correct horse '.repeat(9) + 'xyz'],
  ['a word with digits', 'password2026!'],
  ['a word in look-alikes', 'P4$$w0rd!!!!'],
  ['four different characters', 'zqxwwxqzqzqx'],
  ['a word exactly twice', 'passwordpassword'],
  ['a word twice', 'adminadminadmin'],
  ['a keyboard run', 'asdfghjklzxcvb'],
  ['digits in order', '1234567890123'],
  ['few different characters', 'abababababab'],
  ['the address', 'Ada@Example.com-1'],
])('%s is refused', (_what, password) =>
  expect(() => accepts(password)).toThrow(expect.objectContaining({ status: 400 })),
)

test('the same text typed in two ways is one password', () =>
  expect(accepts('ﬁne ångström café')).toBe(accepts('fine ångström café')))
