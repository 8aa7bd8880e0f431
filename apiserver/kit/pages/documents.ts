/** The two OpenAPI documents that this service publishes: one for customers, one for operators. */
import { openApiDocument, type OpenApiDocument } from '../../../kit/http/openapi.ts'
import type { Route } from '../../../kit/http/route.ts'
import { FIELD_DESCRIPTIONS } from '../../../resources/descriptions.ts'
import { EXAMPLE_VALUES } from '../../../resources/kit/examples.ts'
import { ROUTES } from '../../../resources/index.ts'
import { VERSION } from '../../../domain/version.ts'

const ABOUT = {
  customer: {
    title: 'svccloud',
    description:
      'Servers and what belongs to them. Changes of infrastructure answer 202 with an operation; poll it until ' +
      'it has ended. Every refusal is a problem document.',
  },
  operator: {
    title: 'svccloud for operators',
    description: 'Infrastructure and accounts, for the people who run this cloud.',
  },
} as const

/** The OpenAPI document of one audience: customers or operators. */
export const documentFor = (audience: Route['audience']): OpenApiDocument =>
  openApiDocument(
    ROUTES.filter((route) => route.audience === audience),
    {
      ...ABOUT[audience],
      version: VERSION,
      serverUrl: '/',
      exampleValues: EXAMPLE_VALUES,
      descriptions: FIELD_DESCRIPTIONS,
    },
  )
