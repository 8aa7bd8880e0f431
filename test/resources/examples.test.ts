import { expect, test } from 'vitest'
import { EXAMPLES } from '../../resources/examples.ts'
import { ROUTES } from '../../resources/index.ts'

test('every operation that needs a body has an example that its schema takes; add it to resources/examples.ts', () => {
  const needing = ROUTES.filter(({ body }) => body !== null && !body.safeParse({}).success)
  expect(needing.filter(({ id }) => EXAMPLES[id] === undefined).map(({ id }) => id)).toEqual([])
  for (const [id, example] of Object.entries(EXAMPLES)) {
    const route = ROUTES.find((candidate) => candidate.id === id)
    expect(route?.body?.safeParse(example), id).toMatchObject({ success: true })
  }
})
