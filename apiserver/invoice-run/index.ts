import { noun } from '../noun.ts'
import type { Parts } from '../parts.ts'
import { invoiceRunEndpoints } from './endpoints.ts'

export const invoiceRun = noun<Parts>({ name: 'invoice_run', endpoints: invoiceRunEndpoints })
