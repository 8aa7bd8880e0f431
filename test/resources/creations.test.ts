/** What creations can say, of what the object shows afterwards. */
import { expect, test } from 'vitest'
import { z } from 'zod'
import type { Route } from '../../kit/http/route.ts'
import { ROUTES } from '../../resources/index.ts'

/** Operations that create what they answer, under the path of its noun or beside another object. */
const isCreation = ({ id, method, path }: Route): boolean =>
  method === 'POST' && (!path.includes('{') || id.startsWith('restore_'))

const fieldsOf = (schema: z.ZodType | null | undefined): Readonly<Record<string, unknown>> =>
  schema instanceof z.ZodObject ? schema.shape : {}

/** The fields of the objects in the answers to a success. */
const shownBy = ({ answers }: Route): readonly string[] =>
  [answers[201], answers[202]].flatMap((answer) =>
    Object.values(fieldsOf(answer)).flatMap((part) => (part instanceof z.ZodObject ? Object.keys(part.shape) : [])),
  )

test('what can be protected can be so from the start: no moment is without protection', () => {
  const creations = ROUTES.filter((route) => isCreation(route) && shownBy(route).includes('is_protected'))
  expect(creations.map(({ id }) => id)).toEqual(expect.arrayContaining(['create_server', 'create_storage']))
  for (const { id, body } of creations) expect(fieldsOf(body), id).toHaveProperty('is_protected')
})
