import { expect, test } from 'vitest'
import {
  type FloatingIpFacts,
  parseTarget,
  requireAssignable,
  requireReleasable,
  TARGET_PATTERN,
} from '../../../domain/floating-ip/rules.ts'
import { Problem } from '../../../domain/problem.ts'

const free: FloatingIpFacts = { id: 'ip', isAssigned: false, isDeleting: false, activeOperation: undefined }
const refusal = (check: (facts: FloatingIpFacts) => void, facts: Partial<FloatingIpFacts>) => {
  try {
    check({ ...free, ...facts })
    return undefined
  } catch (error) {
    return error instanceof Problem ? error.members.reason : error
  }
}

test.each<[Partial<FloatingIpFacts>, string | undefined, string | undefined]>([
  [{}, undefined, undefined],
  [{ isAssigned: true }, undefined, 'in_use'],
  [{ activeOperation: { id: 'op' } }, 'operation_in_progress', 'operation_in_progress'],
  [{ activeOperation: { id: 'op' }, isAssigned: true }, 'operation_in_progress', 'operation_in_progress'],
  [{ isDeleting: true }, 'state_not_allowed', 'state_not_allowed'],
])('%o can be assigned and released, or is refused', (facts, assign, release) => {
  expect(refusal(requireAssignable, facts)).toBe(assign)
  expect(refusal(requireReleasable, facts)).toBe(release)
})

test.each<[string, ReturnType<typeof parseTarget> | undefined]>([
  ['public', { kind: 'public' }],
  ['private:back', { kind: 'private', networkId: 'back' }],
  ['private:', undefined],
  ['private:Back', undefined],
  ['', undefined],
  ['publicly', undefined],
])('the target %s', (text, target) => expect(TARGET_PATTERN.test(text) ? parseTarget(text) : undefined).toEqual(target))
