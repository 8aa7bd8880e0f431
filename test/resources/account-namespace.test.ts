/** The namespace of an account names the account, and no other namespace does. */
import { expect, test } from 'vitest'
import { accountNamespace, accountOfNamespace } from '../../resources/index.ts'

const ACCOUNT = '6f2c1d0a-58a1-4c0e-9b41-0d6c9c1f2a77'

test('the account of a namespace', () => {
  expect(accountOfNamespace(accountNamespace(ACCOUNT))).toBe(ACCOUNT)
})

test.each(['acct-', 'acct-shop', `acct-${ACCOUNT}-old`, `acct-x${ACCOUNT}`, `node-${ACCOUNT}`, ACCOUNT, 'default', ''])(
  'the namespace %j is no account',
  (namespace) => {
    expect(accountOfNamespace(namespace)).toBeUndefined()
  },
)
