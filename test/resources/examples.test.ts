import { expect, test } from 'vitest'
import { ROUTES } from '../../resources/index.ts'

test('every operation that needs a body has an example, on its route, that its schema takes', () => {
  const withBody = ROUTES.filter(({ body }) => body !== null)
  const needing = withBody.filter(({ body }) => body?.safeParse({}).success === false)
  expect(needing.filter(({ example }) => example === null).map(({ id }) => id)).toEqual([])
  const shown = ROUTES.filter(({ example }) => example !== null)
  expect(shown.filter(({ body, example }) => body?.safeParse(example).success !== true).map(({ id }) => id)).toEqual([])
})
