/** Payment methods of an account, and whether it may create billable resources: public shapes and routes. */
import { z } from 'zod'
import { route } from '../kit/define.ts'
import { DateTime, pageOf, PageQuery } from '../kit/shapes.ts'
import { routesUnder } from '../kit/verbs.ts'
import { ObjectName } from '../kit/fields.ts'

const WEBHOOK_BYTES_MAXIMUM = 262_144

export const AccountStanding = z
  .strictObject({
    requires_billing_approval: z
      .boolean()
      .describe('Whether paid usage needs an approval besides a saved payment method.'),
    can_create_resources: z.boolean().describe('Whether the account may create billable resources.'),
    reason: z
      .enum(['payment_method_required', 'owner_approval_required', 'account_suspended'])
      .nullable()
      .describe('Reason why it may not.'),
    suspended_for_payment_at: DateTime.nullable().describe(
      'Time since when an invoice is overdue beyond the grace period; paying it lifts this suspension.',
    ),
    suspended_by_staff_at: DateTime.nullable().describe(
      'Time when staff suspended the account; paying does not lift this suspension.',
    ),
  })
  .meta({ id: 'AccountStanding' })

export const PaymentConfiguration = z
  .strictObject({
    payments_configured: z
      .boolean()
      .describe(
        'Whether this cloud has a payment processor. Without one, nothing can be paid and invoices stay unbilled.',
      ),
    publishable_key: z
      .string()
      .nullable()
      .describe('Publishable key of the payment processor, for pages that use its scripts.'),
    standing: AccountStanding,
  })
  .meta({ id: 'PaymentConfiguration' })

const PaymentMethod = z
  .strictObject({
    id: z.string(),
    type: z.string().describe('card, sepa_debit and so on, as named by the payment processor.'),
    brand: z.string().describe('Brand of a card; empty for other types.'),
    last4: z.string().describe('Last four digits of a card; empty for other types.'),
    exp_month: z.int().describe('Expiry month of a card; 0 for other types.'),
    exp_year: z.int().describe('Expiry year of a card; 0 for other types.'),
    is_default: z.boolean().describe('Whether invoices are charged to it.'),
  })
  .meta({ id: 'PaymentMethod' })

const MethodParams = z.strictObject({ id: ObjectName.describe('Id of the payment method.') })

const payments = routesUnder({
  path: '/v1/account/billing',
  permission: 'billing.manage',
})

export const getPaymentConfiguration = payments.get('get_payment_configuration', '', {
  summary: 'Get the payment configuration and standing of the account',
  permission: 'billing.read',
  answers: { 200: PaymentConfiguration },
})
export const listPaymentMethods = payments.get('list_payment_methods', '/payment-methods', {
  summary: 'List payment methods',
  description: 'Current payment methods at the payment processor, by id.',
  permission: 'billing.read',
  isCredentialRead: true,
  audit: 'account.payment_methods_read',
  query: PageQuery,
  answers: { 200: pageOf(PaymentMethod) },
  refuses: [400, 503],
})
export const removePaymentMethod = payments.delete('remove_payment_method', '/payment-methods/{id}', {
  summary: 'Remove a payment method',
  description: 'After the default one is removed, the account has no default until you set another.',
  isRefusedToSupport: true,
  audit: 'account.payment_method_removed',
  noDryRun: 'the payment processor keeps it',
  params: MethodParams,
  refuses: [404, 503],
})
export const setDefaultPaymentMethod = payments.post('set_default_payment_method', '/payment-methods/{id}/default', {
  summary: 'Set the default payment method',
  isRefusedToSupport: true,
  audit: 'account.payment_method_default_changed',
  noDryRun: 'the payment processor keeps it',
  params: MethodParams,
  answers: { 204: null },
  refuses: [404, 503],
})
export const createPaymentSetupSession = payments.post('create_payment_setup_session', '/setup-session', {
  summary: 'Start adding a payment method',
  description:
    'Returns the URL of a page of the payment processor that saves a payment method; nothing is charged. The page ' +
    'returns to `/settings/billing`. The first payment method becomes the default.',
  isRefusedToSupport: true,
  needs: 'verified',
  audit: 'account.payment_setup_started',
  noDryRun: 'the payment processor keeps it',
  answers: {
    201: z
      .strictObject({ url: z.url().describe('URL to redirect the customer to.') })
      .meta({ id: 'PaymentSetupSession' }),
  },
  refuses: [503],
})
export const receivePaymentEvent = route({
  id: 'receive_payment_event',
  method: 'POST',
  path: '/v1/webhooks/payments',
  summary: 'Receive an event of the payment processor',
  permission: null,
  credentials: ['public'],
  description:
    'For the payment processor, which signs the body; a signature is valid for five minutes. Duplicate and ' +
    'irrelevant events are also answered with 200.',
  readsBodyAs: 'bytes',
  bodyBytesMaximum: WEBHOOK_BYTES_MAXIMUM,
  budget: 'none',
  body: z.looseObject({ id: z.string(), type: z.string() }),
  example: { id: 'evt_1', type: 'invoice.paid' },
  answers: { 200: z.strictObject({}) },
  refuses: [400, 503],
})

export const PAYMENT_ROUTES = [
  getPaymentConfiguration,
  listPaymentMethods,
  removePaymentMethod,
  setDefaultPaymentMethod,
  createPaymentSetupSession,
  receivePaymentEvent,
] as const
