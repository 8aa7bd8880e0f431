/** The documents that this service publishes: every example is held against its schema. */
import { describe, expect, test } from 'vitest'
import { documentCheckFor } from '../../../contract/document-check.ts'

describe.each(['customer', 'operator'] as const)('the document for every %s', (audience) => {
  test('has valid examples of all its JSON answers and refusals', () => {
    expect(
      documentCheckFor(audience)
        .examples()
        .map(({ place, faults }) => [place, faults])
        .filter(([, faults]) => faults !== undefined),
    ).toEqual([])
  })
})
