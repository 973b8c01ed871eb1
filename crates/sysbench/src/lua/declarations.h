typedef enum {
  SB_CNT_OTHER, SB_CNT_READ, SB_CNT_WRITE, SB_CNT_TRX, SB_CNT_ERROR, SB_CNT_RECONNECT,
  SB_CNT_BYTES_READ, SB_CNT_BYTES_WRITTEN, SB_CNT_MAX
} sb_counter_type;

typedef struct { uint32_t nrows; uint32_t nfields; } sql_result;

struct whyso_user {
  int32_t status; int32_t sql_errno; uint32_t has_rows; uint32_t statement_id;
  uint32_t params; uint32_t is_over; const char *text; uint32_t text_length;
  sql_result result;
};

struct whyso_connection { uint32_t number; };

struct whyso_loop { struct whyso_user *user; };

struct whyso_param { int32_t kind; int32_t is_null; int64_t integer; double real; uint32_t length; uint32_t length_max; char text[?]; };
