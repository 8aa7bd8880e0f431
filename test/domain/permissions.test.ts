import { expect, test } from 'vitest'
import { hasStaffRole, PERMISSIONS, type Role, type TokenScope, tokenPermissions } from '../../domain/permissions.ts'

const READING: TokenScope = ['read', 'billing.read']
const ALL: TokenScope = PERMISSIONS

test.each<readonly [Role, TokenScope, readonly string[]]>([
  ['owner', 'read', ['read', 'billing.read']],
  ['member', 'read', ['read']],
  ['viewer', 'read', ['read']],
  ['owner', 'read_write', ['read', 'operate', 'billing.read', 'billing.manage']],
  ['admin', 'read_write', ['read', 'operate', 'billing.read', 'billing.manage']],
  ['member', 'read_write', ['read', 'operate']],
  ['viewer', 'read_write', ['read']],
  ['owner', ALL, ['read', 'operate', 'billing.read', 'billing.manage']],
  ['member', ALL, ['read', 'operate']],
  ['owner', READING, ['read', 'billing.read']],
  ['member', READING, ['read']],
  ['viewer', ['operate'], []],
  ['owner', [], []],
])('a token of an %s with scope %j may %j', (role, scope, expected) =>
  expect(tokenPermissions(role, scope)).toEqual(expected),
)

test.each([
  [[], 'any', false],
  [['support'], 'any', true],
  [['support'], 'support', true],
  [['support'], 'finance', false],
  [['finance', 'support'], 'support', true],
  [['operations'], 'finance', true],
  [['operations'], 'support', true],
] as const)('staff of %j hold the role %s: %s', (held, wanted, expected) =>
  expect(hasStaffRole(held, wanted)).toBe(expected),
)
