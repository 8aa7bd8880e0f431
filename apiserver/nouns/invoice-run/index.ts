import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import { invoiceRunEndpoints } from './endpoints.ts'

export const invoiceRun = noun<Parts>({ name: 'invoice_run', endpoints: invoiceRunEndpoints })
