/** Quotas of an account: public shape and route. */
import { z } from 'zod'
import { route } from '../kit/define.ts'
import { completeListOf } from '../kit/shapes.ts'

export const Quota = z
  .strictObject({ name: z.string(), limit: z.int(), used: z.int(), scope: z.enum(['account', 'zone']) })
  .meta({ id: 'Quota' })

export const listAccountQuotas = route({
  id: 'list_account_quotas',
  method: 'GET',
  path: '/v1/account/quotas',
  summary: 'List quotas with their usage',
  permission: 'read',
  answers: { 200: completeListOf(Quota) },
})

export const QUOTA_ROUTES = [listAccountQuotas] as const
