/** A field for an amount: typed in euros, sent in cents. Its limits are said in euros too. */
import { type ReactNode, useState } from 'react'
import type { FieldViewProps, FormField } from '../../nouns/noun.ts'
import { CURRENCY, typedAmount } from '../../texts/format.ts'
import { TextField } from '../../ui/field.tsx'
import { o } from '../texts/index.ts'

const AMOUNT = /^\d+([.,]\d{1,2})?$/

/** The text itself when it is no amount, which no form sends. */
const centsIn = (text: string): number | string | undefined =>
  text === '' ? undefined : AMOUNT.test(text) ? Math.round(Number(text.replace(',', '.')) * 100) : text

function Euros({ common, value, set }: FieldViewProps): ReactNode {
  const [text, setText] = useState(typeof value === 'number' ? typedAmount(value) : '')
  const isAmount = text === '' || AMOUNT.test(text)
  return (
    <TextField
      {...common}
      wrong={common.wrong === undefined || isAmount ? common.wrong : o().account.noAmount}
      value={text}
      onChange={(next) => {
        const amount = next.trim()
        setText(amount)
        set(centsIn(amount))
      }}
      unit={CURRENCY}
      inputMode="decimal"
    />
  )
}

/** For the field of a form. */
export const EUROS: Pick<FormField, 'view' | 'limitText'> = { view: Euros, limitText: typedAmount }
