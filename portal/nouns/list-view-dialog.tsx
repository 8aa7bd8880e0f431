/** The columns and the order of a list. */
import type { ReactNode } from 'react'
import { nounTexts, t } from '../texts/index.ts'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Checkbox, SelectField } from '../ui/field.tsx'
import { Stack } from '../ui/layout.tsx'
import { labelOf } from './fields.tsx'
import { fieldsOf, type ListView } from './list-view.ts'
import type { Noun } from './noun.ts'

const SERVICE = 'service'
const toId = (by: string, isDown: boolean): string => `${by} ${isDown ? 'down' : 'up'}`

export interface ListViewDialogProps {
  readonly noun: Noun
  readonly view: ListView
  /** Ids and names of what it can be ordered by; none while more items follow. */
  readonly orders: readonly { readonly id: string; readonly name: string }[]
  readonly onClose: () => void
}

export function ListViewDialog({ noun, view, orders, onClose }: ListViewDialogProps): ReactNode {
  const { fields, setFields, order, setOrder } = view
  const texts = t().list
  const options = [
    { id: SERVICE, name: texts.newestFirst },
    ...orders.flatMap(({ id, name }) => [
      { id: toId(id, false), name: texts.up(name) },
      { id: toId(id, true), name: texts.down(name) },
    ]),
  ]
  return (
    <Dialog title={`${nounTexts(noun.name).many}: ${texts.view}`} onClose={onClose}>
      <div className="form">
        {orders.length === 0 ? (
          <p className="soft">{texts.noOrder}</p>
        ) : (
          <SelectField
            label={texts.order}
            options={options}
            value={order === undefined ? SERVICE : toId(order.by, order.isDown)}
            onChange={(id = SERVICE) => {
              const [by = SERVICE, direction] = id.split(' ')
              setOrder(by === SERVICE ? undefined : { by, isDown: direction === 'down' })
            }}
          />
        )}
        <fieldset className="field">
          <legend className="label">{texts.columns}</legend>
          <Stack gap="tight">
            {fieldsOf(noun).map((field) => (
              <Checkbox
                key={field}
                label={labelOf(field)}
                isOn={fields.includes(field)}
                onChange={(isOn) =>
                  setFields(fieldsOf(noun).filter((each) => (each === field ? isOn : fields.includes(each))))
                }
              />
            ))}
          </Stack>
        </fieldset>
        <div className="dialog-end">
          <Button onPress={() => setFields(noun.columns)}>{texts.usualColumns}</Button>
          <Button kind="primary" onPress={onClose}>
            {texts.done}
          </Button>
        </div>
      </div>
    </Dialog>
  )
}
